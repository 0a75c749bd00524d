package main

import (
	"strings"
	"testing"
)

const benchOutput = `goos: linux
pkg: runloop.dev/rlp/hostcalls
BenchmarkCall/empty-2   	1000	  30.0 ns/op	 0 B/op	 0 allocs/op
BenchmarkCall/empty-2   	1000	  40.0 ns/op	 0 B/op	 0 allocs/op
BenchmarkCall/empty-2   	1000	  90.0 ns/op	 0 B/op	 0 allocs/op
BenchmarkCall/checked-2 	1000	  50.0 ns/op	 0 B/op	 1 allocs/op
PASS
pkg: runloop.dev/rlp/hostcalls/gate
BenchmarkCall/checked-2 	1000	  500.0 ns/op
BenchmarkCall/many-2 	1000	  9000.0 ns/op	 60.0 ns/call
`

func TestReport(t *testing.T) {
	cases := map[string]struct {
		line, want string
		kept       bool
	}{
		"kept ratio":   {"a\thostcalls.Call/checked\thostcalls.Call/empty\t1.5", "1.25  at most 1.5", true},
		"broken ratio": {"a\thostcalls.Call/checked\thostcalls.Call/empty\t1.2", "BROKEN", false},
		"other room":   {"a\thostcalls/gate.Call/checked\thostcalls.Call/empty\t20", "12.50", true},
		"other unit":   {"a\thostcalls/gate.Call/many@ns/call\thostcalls.Call/empty\t1.5", "1.50  at most 1.5", true},
		"time":         {"a\thostcalls.Call/checked\tns/op\t50", "50.00  at most 50 ns/op: kept", true},
		"allocations":  {"a\thostcalls.Call/checked\tallocs/op\t0", "BROKEN", false},
		"not measured": {"a\tcaps.Check\tns/op\t50", "not measured", true},
		"no measure":   {"a\thostcalls.Call/checked\tcaps.Check\t1", "not measured", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ps, err := parsePromises(c.line + "\n")
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			kept, err := report(&out, ps, strings.NewReader(benchOutput))
			if err != nil || kept != c.kept || !strings.Contains(out.String(), c.want) {
				t.Errorf("kept %v, error %v: %s", kept, err, out.String())
			}
		})
	}
}

func TestPromisesParse(t *testing.T) {
	ps, err := parsePromises(promises)
	if err != nil || len(ps) == 0 {
		t.Fatalf("%d promises, error %v", len(ps), err)
	}
	for _, bad := range []string{"a\tb\tc\n", "a\tb\tc\tx\n", "\n"} {
		if _, err := parsePromises(bad); err == nil {
			t.Errorf("parsePromises(%q) took it", bad)
		}
	}
}
