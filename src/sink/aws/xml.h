/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the answers of AWS's query services (SNS, STS, errors of others): elements by their names. It is no XML parser: these answers have no
 * comments, no CDATA, and no element within one of the same name. What it is given may be anything. */
#ifndef HK_SINK_AWS_XML_H
#define HK_SINK_AWS_XML_H

#include <stdbool.h>
#include <stddef.h>

#include <hikyaku/facts.h>

/* Finds the next element of this name, and moves `*rest` behind it. `*out_inner` is what stands between its tags. False: there is none that
 * is whole. */
bool hk_aws_xml_next(struct hk_str *rest, const char *name, struct hk_str *out_inner);
/* The text of the first element of this name, with its entities resolved. False (and `out` empty): there is none. What does not fit is cut
 * off, at a character. */
bool hk_aws_xml_text(struct hk_str in, const char *name, char *out, size_t room);

#endif
