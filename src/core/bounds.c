/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of options. */
#include <math.h>

#include "core/bounds.h"

enum hk_code hk_bounds_double(const char *name, double value, double lo, double hi, struct hk_err *err)
{
    if (!isfinite(value))
        return hk_err_set(err, HK_INVALID, "%s: is not a finite number", name);
    if (value < lo || value > hi)
        return hk_err_set(err, HK_RANGE, "%s: %g is outside %g to %g", name, value, lo, hi);
    return HK_OK;
}

enum hk_code hk_bounds_u64(const char *name, uint64_t value, uint64_t lo, uint64_t hi, struct hk_err *err)
{
    if (value < lo || value > hi)
        return hk_err_set(err, HK_RANGE, "%s: %llu is outside %llu to %llu", name, (unsigned long long)value,
                          (unsigned long long)lo, (unsigned long long)hi);
    return HK_OK;
}
