/* SPDX-License-Identifier: Apache-2.0 */
/* Where temporary keys come from, and how each place is asked: one HTTP request, or three for an instance. Only makes the requests;
 * provider.c sends them. */
#ifndef HK_SINK_AWS_QUESTION_H
#define HK_SINK_AWS_QUESTION_H

#include "base/buf.h"
#include "base/cidr.h"
#include "sink/aws/credentials.h"

#define HK_AWS_URL_MAX    2048
#define HK_AWS_BEARER_MAX 8192

enum hk_aws_step {
    HK_AWS_STEP_STS = 0, /* AssumeRoleWithWebIdentity: unsigned, the token in the body */
    HK_AWS_STEP_CONTAINER,
    HK_AWS_STEP_TOKEN, /* IMDSv2: a token first … */
    HK_AWS_STEP_ROLE,  /* … then the name of the instance's role … */
    HK_AWS_STEP_KEYS   /* … and its keys */
};

struct hk_aws_question {
    enum hk_aws_step step;
    const char *method;
    char url[HK_AWS_URL_MAX];
    const char *header;            /* NULL: none beside the usual ones */
    char value[HK_AWS_BEARER_MAX]; /* of that header, a secret */
    struct hk_buf body;            /* of STS, with its token */
    const struct hk_cidr *allow;   /* static; NULL: as the destination */
    size_t n_allow;
};

void hk_aws_question_init(struct hk_aws_question *q);
void hk_aws_question_fini(struct hk_aws_question *q); /* wipes it */

/* The first one for a place. HK_DENIED: a variable or a file cannot be used, `err` says which; HK_NOMEM. */
enum hk_code hk_aws_question_first(struct hk_aws_question *q, enum hk_aws_where where,
                                   const struct hk_aws_source *source, const char *region,
                                   struct hk_err *err) HK_MUSTCHECK;
/* The one that follows from an answer to TOKEN or ROLE. HK_DENIED: it cannot be what was asked for. */
enum hk_code hk_aws_question_next(struct hk_aws_question *q, const struct hk_aws_source *source,
                                  struct hk_str answer, struct hk_err *err) HK_MUSTCHECK;
/* Whom it asks, for people: "STS". */
const char *hk_aws_question_whom(const struct hk_aws_question *q);
/* "amazonaws.com", or what a region of another part of AWS has instead. */
const char *hk_aws_domain(const char *region);

#endif
