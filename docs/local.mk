# SPDX-License-Identifier: Apache-2.0
dist_doc_DATA += docs/decisions.md docs/protocol.md
