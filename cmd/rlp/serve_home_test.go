//go:build !slim

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"runloop.dev/rlp/internal/service"
)

// A home that is moved away took what narrows along. Nothing is launched, asked or
// written at its path then, until it is back.
func TestNothingIsDecidedWithoutTheHome(t *testing.T) {
	h := testingHost(t, "[security]\nrun_grant = \"operator_full\"\n")
	sent := &service.Request{Bundle: archived(t, "sent", "time = true\n", importing(t))}
	lists := func() error {
		_, err := h.Ask(t.Context(), h.who, nil, "agent", "list")
		return err
	}
	all := func() []error {
		_, launched := h.Launch(t.Context(), h.who, sent, begin(t))
		_, listed := h.Agents(t.Context(), h.who)
		return []error{h.Check(t.Context(), h.who, sent), launched, lists(), listed, h.ready(t.Context())}
	}
	for i, err := range all() { // control
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	away := h.home + ".away"
	if err := os.Rename(h.home, away); err != nil {
		t.Fatal(err)
	}
	gone := all()
	if err := os.MkdirAll(h.home, 0o700); err != nil { // as what makes a home anew does
		t.Fatal(err)
	}
	for i, err := range append(gone, all()...) {
		var unavailable *service.UnavailableError
		if err == nil || i%5 != 4 && !errors.As(err, &unavailable) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := os.Stat(filepath.Join(h.home, "journal")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a run was begun in another home: %v", err)
	}
	if err := errors.Join(os.RemoveAll(h.home), os.Rename(away, h.home)); err != nil {
		t.Fatal(err)
	}
	for i, err := range all() {
		if err != nil {
			t.Errorf("%d, back: %v", i, err)
		}
	}
}
