/* SPDX-License-Identifier: Apache-2.0
 *
 * @made@
 */
#include "@unit@.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

@constants@
const @real@ @name@_gravity[3] = {@gravity@};
@lanes@@functions@
