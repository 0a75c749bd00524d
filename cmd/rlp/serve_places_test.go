//go:build !slim

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/service"
)

// What commands answer names files of the home to who operates; others are told
// where they are in it.
func TestReadersAreToldNoPlace(t *testing.T) {
	h := testingHost(t, "")
	h.install(t, "placed", `kb_write = ["notes", "drafts"]`+"\n", importing(t))
	override := filepath.Join(h.home, "caps", "overrides", "placed.toml")
	if err := os.MkdirAll(filepath.Dir(override), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(override, []byte("[capabilities]\nkb_write = [\"notes\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	reader := *h.who
	reader.Name, reader.May = "token:reader", service.Read
	list, err := h.SomeAgents(t.Context(), &reader, service.AgentQuery{Name: "placed"})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	for _, words := range [][]string{{"caps", "explain", list[0].Path, "kb:write:drafts"}, {"caps", "override", list[0].Path}} {
		p, err := h.Ask(t.Context(), &reader, nil, words...)
		if err != nil || strings.Contains(string(p), filepath.Dir(h.home)) || !strings.Contains(string(p), `"caps/overrides/placed.toml`) {
			t.Errorf("a reader is told %s: %v", p, err)
		}
		p, err = h.Ask(t.Context(), h.who, nil, words...)
		if err != nil || !strings.Contains(string(p), override) {
			t.Errorf("an operator is told %s: %v", p, err)
		}
	}
}

// Of many agents those are opened that are asked for.
func TestSomeAgents(t *testing.T) {
	h := testingHost(t, "")
	for _, name := range []string{"a", "b", "c", "d"} {
		h.install(t, name, "", importing(t))
	}
	for _, c := range []struct {
		q    service.AgentQuery
		want string
	}{
		{service.AgentQuery{}, "a b c d"},
		{service.AgentQuery{Name: "c"}, "c"},
		{service.AgentQuery{Name: "../agents/c"}, ""},
		{service.AgentQuery{After: "a", Limit: 2}, "b c"},
		{service.AgentQuery{After: "d", Limit: 2}, ""},
	} {
		list, err := h.SomeAgents(t.Context(), h.who, c.q)
		var names []string
		for _, a := range list {
			names = append(names, a.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != c.want {
			t.Errorf("%+v: %q, %v", c.q, got, err)
		}
	}
}
