/* SPDX-License-Identifier: 0BSD
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
?wrenches 
?wrenches constexpr std::size_t n_wrenches = @NAME@_N_WRENCHES;
?wrenches // (moment, force) on each of the links and their time derivatives.
?wrenches template <std::size_t K>
?wrenches using Wrenches = std::array<std::array<std::array<Real, 6>, n_wrenches>, K>;
?all 
?all // Positions of all joints, at which the loops are closed.
?all using Positions = std::array<Real, @all@>;
?all constexpr Positions start{{@start@}};
?all // See @name@_close.
?all inline bool close(const Joints<1> & wanted, Positions & closed) noexcept
?all {
?all   return @name@_close(wanted[0].data(), closed.data()) != 0;
?all }

template <typename T>
const Real * numbers(const T * arrays) noexcept {return reinterpret_cast<const Real *>(arrays);}
template <typename T>
Real * numbers(T * arrays) noexcept {return reinterpret_cast<Real *>(arrays);}
@functions@
}  // namespace @unit@

#endif
