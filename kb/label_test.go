package kb

import (
	"bytes"
	"path/filepath"
	"testing"
)

// trusts wants every way of reading a value to say the same of its label, by
// the owner and by a client.
func trusts(t *testing.T, s *Store, key string, want bool) {
	t.Helper()
	v := s.View(Origin{})
	c, err := v.Content(t.Context(), "notes", key)
	if err != nil || c.Trusted != want {
		t.Errorf("%s: a value that is trusted %v, not %v: %v", key, c.Trusted, want, err)
	}
	label := map[bool]string{true: Trusted, false: Untrusted}[want]
	if value, err := v.Get(t.Context(), "notes", key); err != nil || value.Origin.Label != label {
		t.Errorf("%s: a value of label %q, not %q: %v", key, value.Origin.Label, label, err)
	}
	for _, clean := range []func([]byte) []byte{nil, func(p []byte) []byte { return p }} {
		hits, err := v.Search(t.Context(), Query{Domain: "notes", Text: key, Clean: clean})
		if err != nil || len(hits) != 1 || hits[0].Trusted != want {
			t.Errorf("%s: found %+v, want it trusted %v: %v", key, hits, want, err)
		}
	}
	for e, err := range v.List(t.Context(), "notes", key) {
		if err != nil || e.Origin.Label != label {
			t.Errorf("%s: listed with label %q, not %q: %v", key, e.Origin.Label, label, err)
		}
	}
}

// The label of a value is what who wrote it last gave it, for everybody who
// reads it in any way, also through another process, and after it was kept and
// put back.
//
//rlp:holds Y28
func TestLabelsSurvive(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	s, err := Open(t.Context(), Options{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	client, err := Open(t.Context(), s.opt)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for key, label := range map[string]string{"good": Trusted, "bad": Untrusted, "unsaid": ""} {
		if _, err := client.View(Origin{Label: label, Source: "http:https://evil.example/p"}).Put(t.Context(), "notes", key,
			[]byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	all := func(good, bad bool) {
		t.Helper()
		for _, store := range []*Store{s, client} {
			trusts(t, store, "good", good)
			trusts(t, store, "bad", bad)
			trusts(t, store, "unsaid", false)
		}
	}
	all(true, false)
	var file bytes.Buffer
	if _, err := s.Backup(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	for key, label := range map[string]string{"good": Untrusted, "bad": Trusted} {
		if _, err := client.View(Origin{Label: label}).Put(t.Context(), "notes", key, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	all(false, true)
	if _, err := client.Restore(t.Context(), bytes.NewReader(file.Bytes()), true); err != nil {
		t.Fatal(err)
	}
	all(true, false)
}
