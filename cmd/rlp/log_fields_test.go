package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each line of the log says of which tenant, run and agent it is, where the agent
// ran and who asked for it; the first of a run has the limits that hold, the last
// how it ended. Of what the operator gave, and of another tenant, there is nothing.
//
//rlp:holds K7 K56 K57
func TestEveryLogLineSaysWhose(t *testing.T) {
	h := newHouse(t, "acme")
	bundle := h.own("own")
	note := filepath.Join(h.out, "x")
	h.write(filepath.Join(note, "f"), "")
	h.write(filepath.Join(h.out, "in.json"), `"`+canary+`"`)
	narrow := filepath.Join(h.out, "narrow.toml")
	h.write(narrow, "[capabilities]\nkb_read = []\nfs = [\"/elsewhere\"]\n")
	missing := filepath.Join(h.out, "missing.toml")
	h.write(missing, fmt.Sprintf("[capabilities]\nfs = [%q]\n", filepath.Join(note, "none")))
	for _, c := range []struct {
		status int
		args   []string
	}{
		{0, []string{
			"launch", bundle, "--param", "x=" + note, "--input", "@" + filepath.Join(h.out, "in.json"), "--limit",
			"hostcalls_max=7",
		}},
		{0, []string{"launch", bundle, "--param", "x=" + note, "--override", narrow}},
		{124, []string{"launch", bundle, "--param", "x=" + note, "--limit", "wall_time_ms=0"}},
		{77, []string{"launch", bundle, "--param", "x=" + note, "--override", missing}},
	} {
		if status, text := h.in("other", "", c.args...); status != c.status {
			t.Errorf("%v: %d %s", c.args, status, text)
		}
	}
	lines := h.log(t, "other")
	var limits, ends []string
	for _, l := range lines {
		for _, field := range []string{"run_id", "tenant", "agent", "lane", "surface"} {
			if v, ok := l[field].(string); !ok || v == "" || field == "tenant" && v != "other" {
				t.Errorf("%s is %q in %v", field, v, l)
			}
		}
		switch l["msg"] {
		case "run_start":
			text, err := json.Marshal(l["limits"])
			if err != nil {
				t.Fatal(err)
			}
			limits = append(limits, string(text))
		case "run_end":
			text, err := json.Marshal([]any{l["outcome"], l["exit_code"], l["timed_out"], l["refused_by_policy"]})
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, string(text))
		}
	}
	if want := []string{
		`["ok",0,false,false]`, `["ok",0,false,false]`, `["timeout",124,true,false]`,
		`["refused",77,false,true]`,
	}; !slices.Equal(ends, want) {
		t.Errorf("ends %v", ends)
	}
	if len(limits) < 3 || !strings.Contains(limits[0], `"hostcalls_max":7`) || !strings.Contains(limits[2],
		`"wall_time_ms":0`) {
		t.Errorf("limits %v", limits)
	}
}

// log are the lines of a tenant's log, in none of which is a canary.
func (h *house) log(t *testing.T, tenant string) []map[string]any {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(h.dir, "tenants", tenant, "log", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var lines []map[string]any
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), canary) {
			t.Errorf("what was given is in the log: %s", data)
		}
		for text := range strings.Lines(string(data)) {
			var l map[string]any
			if err := json.Unmarshal([]byte(text), &l); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			lines = append(lines, l)
		}
	}
	return lines
}
