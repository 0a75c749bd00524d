package bundles

import (
	"fmt"
	"strings"
	"testing"
)

// Whatever a tool lists has an end: what it costs to hold a list against itself
// and against what a run holds is not for a bundle to say.
func TestListsOfAToolHaveAnEnd(t *testing.T) {
	list := func(n int, word string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ",\"%s%d\"", word, i)
		}
		return "[" + b.String()[1:] + "]"
	}
	tool := func(n int, key string) string {
		return map[string]string{
			"capabilities": `{"version":1,"tools":[{"id":"a","transport":{"kind":"exec","command":"/bin/a"},"capabilities":` +
				list(n, "env:read:A") + `}]}`,
			"transport.env": `{"version":1,"tools":[{"id":"a","transport":{"kind":"exec","command":"/bin/a","env":{` +
				strings.NewReplacer("[", "", "]", "", `",`, `":"x",`).Replace(list(n, "A")) + `:"x"}},"capabilities":[]}]}`,
			"transport.args": `{"version":1,"tools":[{"id":"a","transport":{"kind":"exec","command":"/bin/a","args":` +
				list(n, "x") + `},"capabilities":[]}]}`,
			"schema_refs": `{"version":1,"tools":[{"id":"a","transport":{"kind":"exec","command":"/bin/a"},"capabilities":[],"schema_refs":` + strings.ReplaceAll(list(n, "schemas/a"), `",`, `.json",`) + `}]}`,
		}[key]
	}
	for _, key := range []string{"capabilities", "transport.env", "transport.args", "schema_refs"} {
		_, err := ParseTools("tools.json", []byte(tool(MaxToolWords+1, key)))
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("tools[0]: %s: %d entries; at most %d", key, MaxToolWords+
			1, MaxToolWords)) {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, key := range []string{"capabilities", "transport.env", "transport.args"} { // the control
		if _, err := ParseTools("tools.json", []byte(tool(MaxToolWords, key))); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	// Schemas have bounds of their own.
	if _, err := ParseTools("tools.json", []byte(one(`,"input_schema":{"enum":`+list(MaxToolWords+1, "x")+
		`}`))); err != nil {
		t.Error(err)
	}
}
