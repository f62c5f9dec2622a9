/* SPDX-License-Identifier: 0BSD
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
