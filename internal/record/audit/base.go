package audit

import "strings"

// ByBase reports whether a denial is for the agent's own policy alone, which does
// not hold what was asked. A denial without a layer is not always that: a rate, a
// budget, an address that nobody may reach or what is not there is no layer's vote.
func ByBase(layer, reason string) bool {
	switch {
	case layer != "":
		return layer == "base"
	case reason == "cap_missing", reason == "not_in_base", reason == "caps_empty":
		return true
	}
	return strings.HasSuffix(reason, "_not_permitted") && reason != "address_not_permitted"
}
