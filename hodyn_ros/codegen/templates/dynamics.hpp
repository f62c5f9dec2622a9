/* SPDX-License-Identifier: Apache-2.0
 *
 * @made@
 *
 * The functions of @unit@.h for std::array: motion[k][j], effort[k][j], wrench[k][l][i].
 * There are as many orders of efforts as the motion determines: with K derivatives of the
 * position, itself counted, K - 2. Functions of n samples take arrays of n of each.
 */
#ifndef @NAME@_DYNAMICS_HPP
#define @NAME@_DYNAMICS_HPP

#include "@unit@.h"

#include <array>
#include <cstddef>

namespace @unit@ {

using Real = @real@;
@names@

constexpr std::size_t n_joints = @NAME@_N_JOINTS;
// A number for each joint and its time derivatives: K of them, itself counted.
template <std::size_t K>
using Joints = std::array<std::array<Real, n_joints>, K>;
static_assert(sizeof(Joints<2>) == 2 * n_joints * sizeof(Real), "contiguous");
@types@
template <typename T>
const Real * numbers(const T * arrays) noexcept {return reinterpret_cast<const Real *>(arrays);}
template <typename T>
Real * numbers(T * arrays) noexcept {return reinterpret_cast<Real *>(arrays);}
@functions@
}  // namespace @unit@

#endif
