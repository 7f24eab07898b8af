# SPDX-License-Identifier: Apache-2.0
"""What bench/compare, bench/cost and bench/idle share. Standard library only."""
