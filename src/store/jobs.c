/* SPDX-License-Identifier: Apache-2.0 */
/* Code about jobs that all stores share. */
#include "base/str.h"
#include "store/jobs.h"

const char *hk_job_status_name(unsigned status)
{
    static const char *const names[HK_NJOB_STATUSES] = {[HK_JOB_QUEUED] = "queued",
                                                        [HK_JOB_RUNNING] = "running",
                                                        [HK_JOB_DONE] = "done",
                                                        [HK_JOB_FAILED] = "failed",
                                                        [HK_JOB_CANCELLED] = "cancelled"};
    return status < HK_NJOB_STATUSES ? names[status] : NULL;
}

enum hk_job_status hk_job_status_by_name(struct hk_str name)
{
    for (unsigned s = 0; s < HK_NJOB_STATUSES; s++)
        if (hk_str_eq(name, hk_str_of(hk_job_status_name(s))))
            return (enum hk_job_status)s;
    return HK_JOB_FAILED;
}
