package environ

import (
	"strings"
	"testing"
)

// No name stands in two forms, and each is written as it is looked for.
func TestFormsNameEachVariableOnce(t *testing.T) {
	seen := map[string]bool{}
	for i := range forms {
		for _, name := range forms[i].names {
			if seen[name] || name != strings.ToUpper(name) || FormOf(strings.ToLower(name)) != &forms[i] || Steers(name) {
				t.Errorf("%s", name)
			}
			seen[name] = true
		}
	}
}
