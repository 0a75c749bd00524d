package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"runloop.dev/rlp/internal/serve/access"
	"runloop.dev/rlp/internal/serve/service"
)

// A home that is moved away took what narrows along. Nothing is launched, asked or
// written at its path then, until it is back.
func TestNothingIsDecidedWithoutTheHome(t *testing.T) {
	h := testingHost(t, "[security]\nrun_grant = \"operator_full\"\n")
	sent := &service.Request{Bundle: archived(t, "sent", "time = true\n", importing(t))}
	lists := func() error {
		_, err := h.Verify(t.Context(), h.who)
		return err
	}
	all := func() []error {
		_, launched := h.Launch(t.Context(), h.who, sent, begin(t))
		_, listed := h.Agents(t.Context(), h.who)
		return []error{h.Check(t.Context(), h.who, sent), launched, lists(), listed, h.unready(t)}
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

// Nothing that the service does by itself, or is asked for, makes a home anew where
// it was: an empty one would narrow by nothing, and stand in the way of the one that
// is put back.
func TestAHomeThatIsGoneIsNotMadeAnew(t *testing.T) {
	h := testingHost(t, "[security]\nrun_grant = \"local_minimal\"\n")
	if _, err := h.Log(t.Context(), &service.Caller{Tenant: "default", May: service.Operate}); err != nil {
		t.Fatal(err)
	}
	surface := func() error { _, err := h.Surface(t.Context(), h.who, service.HTTP); return err }
	journals := filepath.Join(h.home, "journal")
	if err := errors.Join(os.MkdirAll(journals, 0o700), os.WriteFile(filepath.Join(journals,
		begin(t).RunID), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if len(h.journalled()) != 1 || surface() != nil {
		t.Fatal("control: nothing is known of the home while it is there")
	}
	if err := os.Rename(h.home, h.home+".away"); err != nil {
		t.Fatal(err)
	}
	var unavailable *service.UnavailableError
	if err := surface(); !errors.As(err, &unavailable) {
		t.Errorf("what is left under no settings is told: %v", err)
	}
	if _, err := h.TokenLayers(t.Context(), &access.Token{Name: "ci", Tenant: "acme", Grant: "{}"}); err == nil {
		t.Error("a token is narrowed by what is not there")
	}
	if _, err := h.Log(t.Context(), &service.Caller{Tenant: "acme", May: service.Operate}); err == nil {
		t.Error("a log is opened")
	}
	if _, ok := h.Backlog(); ok || len(h.journalled()) != 0 {
		t.Error("journals are looked for")
	}
	if err := h.unready(t); err == nil {
		t.Error("it is ready")
	}
	if _, err := os.Stat(h.home); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a home again: %v", err)
	}
	if err := errors.Join(os.RemoveAll(h.home), os.Rename(h.home+".away", h.home)); err != nil {
		t.Fatal(err)
	}
}
