package kb

import (
	"bytes"
	"path/filepath"
	"testing"
)

// A value is plain only while there are masks and they change nothing of it: as
// it is put, when masks change, when it is restored, and for a client.
//
//rlp:holds R26
func TestPlainValues(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	plain := func(t *testing.T, s *Store, key string, want bool) {
		t.Helper()
		if got, err := s.View(Origin{}).Content(t.Context(), "notes", key); err != nil || got.Plain != want {
			t.Errorf("%s is plain: %v, %v", key, got.Plain, err)
		}
	}
	with := func(mask func(string, []byte) []byte, version string, f func(s, client *Store)) {
		t.Helper()
		s, err := Open(t.Context(), Options{Home: home, Mask: mask, MaskVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		client, err := Open(t.Context(), s.opt)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		f(s, client)
	}
	with(maskNumbers, "1", func(s, client *Store) {
		for key, text := range map[string]string{"clear": "nobody", "number": "call 5551234", "empty": ""} {
			if _, err := client.View(Origin{}).Put(t.Context(), "notes", key, []byte(text)); err != nil {
				t.Fatal(err)
			}
			plain(t, s, key, key != "number")
			plain(t, client, key, key != "number")
		}
	})
	with(nil, "", func(s, client *Store) {
		plain(t, s, "clear", false)
		plain(t, client, "number", false)
	})
	everything := func(_ string, v []byte) []byte { return append([]byte("x"), v...) }
	with(everything, "2", func(s, client *Store) { plain(t, client, "clear", false) })
	with(maskNumbers, "1", func(s, client *Store) {
		plain(t, s, "clear", true)
		plain(t, s, "number", false)
		var file bytes.Buffer
		if _, err := s.Backup(t.Context(), &file); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Restore(t.Context(), bytes.NewReader(file.Bytes()), true); err != nil {
			t.Fatal(err)
		}
		plain(t, s, "clear", true)
		plain(t, s, "number", false)
	})
}
