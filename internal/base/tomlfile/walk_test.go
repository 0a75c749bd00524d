package tomlfile

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

//rlp:holds R38
func TestWalkCollects(t *testing.T) {
	tab := mustParse(t, `
name = 1
Flag = true
flag = "yes"
list = ["a", 1]
count = 1.0
price = 2
sub = []
tabs = [1]
extra = 1
ok = ["a", "b"]
`)
	var w Walk
	w.Known(tab, "name", "flag", "list", "count", "price", "sub", "tabs", "ok")
	w.Need(tab, "name", "id")
	if _, ok := w.String(tab, "name"); ok {
		t.Error("1 is no string")
	}
	if _, ok := w.Bool(tab, "flag"); ok {
		t.Error(`"yes" is no boolean`)
	}
	if _, ok := w.Strings(tab, "list"); ok {
		t.Error("a list with an integer is no list of strings")
	}
	if _, ok := w.Int(tab, "count"); ok {
		t.Error("1.0 is no integer")
	}
	if n, ok := w.Number(tab, "price"); !ok || n != 2 {
		t.Error("2 is a number")
	}
	if _, ok := w.Table(tab, "sub"); ok {
		t.Error("[] is no table")
	}
	if _, ok := w.Tables(tab, "tabs"); ok {
		t.Error("[1] is no array of tables")
	}
	if l, ok := w.Strings(tab, "ok"); !ok || len(l) != 2 {
		t.Error("ok")
	}
	if _, ok := w.String(tab, "absent"); ok {
		t.Error("absent")
	}
	want := []string{
		`f.toml:3:1: unknown key "Flag" (keys are matched to the letter: write "flag")`,
		`f.toml:10:1: unknown key "extra"`,
		`f.toml:1:1: the key "id" is missing`,
		`f.toml:2:8: name must be a string, not an integer`,
		`f.toml:4:8: flag must be a boolean, not a string`,
		`f.toml:5:14: list[1] must be a string, not an integer`,
		`f.toml:6:9: count must be an integer, not a decimal number`,
		`f.toml:8:7: sub must be a table, not an array`,
		`f.toml:9:9: tabs[0] must be a table, not an integer`,
	}
	if len(w.Errors()) != len(want) {
		t.Fatalf("%d errors: %v", len(w.Errors()), w.Err())
	}
	for i, e := range w.Errors() {
		if !strings.HasPrefix(e.Error(), want[i]) {
			t.Errorf("%d: got %s, want %s", i, e, want[i])
		}
	}
	var e *Error
	if !errors.As(w.Err(), &e) || new(Walk).Err() != nil {
		t.Error("Err wraps the errors, and none is nil")
	}
}

func TestNearest(t *testing.T) {
	keys := []string{"fs", "fs_ro", "fs_rw", "net", "kb_read", "kb_write", "secrets"}
	for word, want := range map[string]string{
		"FS": `write "fs"`, "kbread": `mean "kb_read"`, "kb-read": `mean "kb_read"`, "secret": `mean "secrets"`,
		"nte": `mean "net"`, "fs_wr": `mean "fs_rw"`, "zzzzzzzz": "one of fs,", strings.Repeat("k", 300): "one of fs,",
	} {
		if got := Nearest(word, keys); !strings.Contains(got, want) {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
	if got := Nearest("x", nil); got != "" {
		t.Errorf("no keys, no hint: %q", got)
	}
}

// What is written is read as what was read: moments, odd keys and text included.
func TestTableIsWrittenAsItWasRead(t *testing.T) {
	root := mustParse(t, `
text = "a \"quoted\" \\ line\nand é"
n = -3
half = 0.5
list = ["a", 1, { k = "v" }]
none = []
[leases]
"fs:write:/home/user/out" = { expires = 2026-12-01T00:00:00Z, max_uses = 10 }
[a."b.c"]
ok = true
`)
	text, err := root.TOML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("again.toml", []byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if want, got := root.plain(dates), again.plain(dates); !reflect.DeepEqual(want, got) {
		t.Errorf("read again it is\n%v, not\n%v", got, want)
	}
}
