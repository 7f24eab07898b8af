# SPDX-License-Identifier: Apache-2.0
dist_doc_DATA += docs/decisions.md docs/performance.md docs/protocol.md
EXTRA_DIST += docs/img/compare.svg
