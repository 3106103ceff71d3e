-- SPDX-License-Identifier: Apache-2.0
-- Fragments that acts on letters and on messages share.

-- The digest of a list: hk_audit_list_hash.
--@ fragment FIELD(text)
octet_length(coalesce({text}, '')) || ':' || coalesce({text}, '') || ','

--@ fragment LIST_DIGEST(t; id; before; after; detail)
encode(sha256(convert_to(string_agg({FIELD({id}::text)} || {FIELD({t}.message_id)} || {FIELD({t}.destination)} ||
  {FIELD({before})} || {FIELD({after})} || {FIELD({detail})}, '' ORDER BY {id}), 'UTF8')), 'hex')
