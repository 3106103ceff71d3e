/* SPDX-License-Identifier: Apache-2.0 */
/* In place of the gate, where there is no libnghttp2: no test asks for it then. */
#include <stdlib.h>

#include "h2_gate.h"

struct h2_gate *h2_gate_new(const struct h2_gate_calls *calls)
{
    (void)calls;
    abort();
}

void h2_gate_free(struct h2_gate *gate)
{
    (void)gate;
}

bool h2_gate_came(struct h2_gate *gate, const char *bytes, size_t len)
{
    (void)gate, (void)bytes, (void)len;
    return false;
}

bool h2_gate_answer(struct h2_gate *gate, const char *text, size_t len)
{
    (void)gate, (void)text, (void)len;
    return false;
}
