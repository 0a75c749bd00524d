package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/agents/sdk"
	"runloop.dev/rlp/agents/sdk/sdktest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const sample = "../../testdata/notes"

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	p := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(p, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (rewrite with -update):\n%s", name, got)
	}
}

func sampleJail(t *testing.T) (jail, string) {
	out := t.TempDir()
	return jail{read: map[string]string{"/notes": sample}, write: map[string]string{"/out": out}}, out
}

// The sample notes, whole: what is printed, written, kept and returned.
func TestSampleNotes(t *testing.T) {
	h := sdktest.New(t)
	j, out := sampleJail(t)
	golden(t, "summary.txt", []byte(run(j, "/notes", "/out")))
	for _, name := range []string{"digest.md", "digest.json"} {
		content, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, content)
	}
	var result bytes.Buffer
	if err := json.Indent(&result, h.Result, "", "  "); err != nil {
		t.Fatal(err)
	}
	golden(t, "result.json", append(result.Bytes(), '\n'))

	if n := len(h.Keys("contacts", "mail-")); n != 16 {
		t.Errorf("%d contacts kept, want 16", n)
	}
	v, ok := h.Value("contacts", contactKey("misaki.tanaka@example.org"))
	want := `{"name":"田中 美咲","email":"misaki.tanaka@example.org","notes":["people/contacts.md","projects/harbour-lights.md"]}`
	if !ok || string(v) != want {
		t.Errorf("contact %s, want %s", v, want)
	}
	var kept, written any
	artifact, _ := h.Value("artifacts", "notes_digest")
	content, _ := os.ReadFile(filepath.Join(out, "digest.json"))
	if json.Unmarshal(artifact, &kept) != nil || json.Unmarshal(content, &written) != nil {
		t.Fatal("the digest is no JSON")
	}
	// Writing comes first, so both hold the same.
	if a, b := mustJSON(t, kept), mustJSON(t, written); a != b {
		t.Errorf("the artifact is not the digest:\n%s\n%s", a, b)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A second run over the same notes writes the same bytes, and reads nothing of
// what the first one wrote though it lies among the notes.
func TestRepeatable(t *testing.T) {
	for _, out := range []string{"/n/out", "/n"} {
		sdktest.New(t)
		dir := tree(t, map[string]string{"a.md": "- [ ] one\nada@example.org\n", "sub/b.md": "due 2026-01-02\n"})
		j := jail{read: map[string]string{"/n": dir}, write: map[string]string{"/n": dir}}
		digest := filepath.Join(dir, strings.TrimPrefix(out, "/n"), "digest.json")
		first := run(j, "/n", out)
		before, err := os.ReadFile(digest)
		if err != nil {
			t.Fatal(err)
		}
		if second := run(j, "/n/", out+"/"); second != first {
			t.Errorf("first:\n%s\nsecond:\n%s", first, second)
		}
		if after, err := os.ReadFile(digest); err != nil || !bytes.Equal(before, after) {
			t.Errorf("digests differ (%v)", err)
		}
	}
}

// What is included from outside the folder is read if nothing stops it (the
// control), and denied, reported and done without where the host does.
func TestInjectedInclude(t *testing.T) {
	files := map[string]string{
		"notes/in/mail.md":  "include: ../../private/salary.md\n- [ ] answer\n",
		"private/salary.md": "Vera Holm <vera@example.org> earns a lot\n![[deeper.md]]\n",
		"private/deeper.md": "- [ ] raise it\n",
	}
	t.Run("control", func(t *testing.T) {
		h := sdktest.New(t)
		dir := filepath.ToSlash(tree(t, files))
		summary := run(osDisk{}, dir+"/notes", dir+"/out")
		if _, ok := h.Value("contacts", contactKey("vera@example.org")); !ok {
			t.Errorf("the include was not followed:\n%s", summary)
		}
		if !strings.Contains(summary, "included "+dir+"/private/salary.md") || !strings.Contains(summary, "2 open to-dos") {
			t.Errorf("summary:\n%s", summary)
		}
	})
	t.Run("denied", func(t *testing.T) {
		h := sdktest.New(t)
		dir := tree(t, files)
		j := jail{read: map[string]string{"/notes": dir + "/notes"}, write: map[string]string{"/out": dir + "/out"}}
		summary := run(j, "/notes", "/out")
		if keys := h.Keys("contacts", ""); len(keys) != 0 {
			t.Errorf("contacts %v", keys)
		}
		want := "could not include /private/salary.md (named in in/mail.md:1): denied\n"
		if !strings.Contains(summary, want) || !strings.Contains(summary, "1 open to-do ") {
			t.Errorf("summary:\n%s\nwant %s", summary, want)
		}
		if bytes.Contains(h.Result, []byte("vera")) {
			t.Errorf("result %s", h.Result)
		}
	})
}

// A loop of includes ends, and so does a folder of nothing but includes.
func TestIncludesEnd(t *testing.T) {
	sdktest.New(t)
	dir := tree(t, map[string]string{"n/a.md": "include: ../x\n", "x": "include: y\n", "y": "include: x\n- [ ] once\n"})
	d := collect(osDisk{}, dir+"/n", "/out")
	if len(d.included) != 2 || len(d.todos) != 1 {
		t.Errorf("included %v, to-dos %v", d.included, d.todos)
	}
	var many strings.Builder
	for i := range 500 {
		many.WriteString("include: /nowhere/" + pad(i, 3) + "\n")
	}
	d = collect(osDisk{}, tree(t, map[string]string{"a.md": many.String()}), "/out")
	if len(d.problems) != followMax {
		t.Errorf("%d includes tried, want %d", len(d.problems), followMax)
	}
}

// Each thing that may be refused, alone: the rest is still done, and the summary
// and the result name it.
func TestEverythingMayBeRefused(t *testing.T) {
	notesOnly := func(j *jail, _ *sdktest.Host) { j.write = nil }
	for _, c := range []struct {
		name    string
		refuse  func(*jail, *sdktest.Host)
		reports []string
		written int
		stored  [2]int // contacts, artifacts
	}{
		{name: "nothing (control)", refuse: func(*jail, *sdktest.Host) {}, written: 2, stored: [2]int{2, 1}},
		{
			name: "writing", refuse: notesOnly, stored: [2]int{2, 1},
			reports: []string{"could not write /out/digest.md: denied", "could not write /out/digest.json: denied"},
		},
		{
			name: "contacts", written: 2, stored: [2]int{0, 1},
			refuse:  func(_ *jail, h *sdktest.Host) { h.Deny("kb_put", "contacts", denied("kb:write:contacts")) },
			reports: []string{"could not store contacts: denied (domain_not_permitted)"},
		},
		{
			name: "artifacts", written: 2, stored: [2]int{2, 0},
			refuse:  func(_ *jail, h *sdktest.Host) { h.Deny("kb_put", "artifacts", denied("kb:write:artifacts")) },
			reports: []string{"could not store the digest in artifacts: denied (domain_not_permitted)"},
		},
		{
			name: "a note", written: 2, stored: [2]int{1, 1},
			refuse:  func(j *jail, _ *sdktest.Host) { j.broken = map[string]error{"/notes/a.md": fs.ErrPermission} },
			reports: []string{"could not read a.md: denied"},
		},
		{
			name: "a sub-folder", written: 2, stored: [2]int{1, 1},
			refuse:  func(j *jail, _ *sdktest.Host) { j.broken = map[string]error{"/notes/sub": fs.ErrPermission} },
			reports: []string{"could not list sub: denied"},
		},
		{
			name: "the folder", written: 2, stored: [2]int{0, 1},
			refuse:  func(j *jail, _ *sdktest.Host) { j.read = nil },
			reports: []string{"0 notes, ", "could not list /notes: denied"},
		},
		{
			name: "the result", written: 2, stored: [2]int{2, 1},
			refuse:  func(_ *jail, h *sdktest.Host) { h.Deny("result", "", &sdk.Error{Errno: sdk.ErrBudget}) },
			reports: []string{"could not return the result: budget exhausted"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := sdktest.New(t)
			dir := tree(t, map[string]string{"a.md": "a@example.org", "sub/b.md": "b@example.org"})
			j := jail{read: map[string]string{"/notes": dir}, write: map[string]string{"/out": t.TempDir()}}
			c.refuse(&j, h)
			summary := run(j, "/notes", "/out")
			for _, want := range c.reports {
				if !strings.Contains(summary, want) {
					t.Errorf("not reported: %s", want)
				}
			}
			if strings.Contains(summary, "could not") != (c.reports != nil) {
				t.Errorf("summary:\n%s", summary)
			}
			stored := [2]int{len(h.Keys("contacts", "")), len(h.Keys("artifacts", ""))}
			if n := strings.Count(summary, "wrote /out/"); n != c.written || stored != c.stored {
				t.Errorf("wrote %d, stored %v, want %d and %v:\n%s", n, stored, c.written, c.stored, summary)
			}
		})
	}
}

func denied(capability string) *sdk.Error {
	return &sdk.Error{Errno: sdk.ErrDenied, Capability: capability, Reason: "domain_not_permitted"}
}

// A denied domain is asked once, not once a contact; an error that the next
// contact need not meet stops nothing.
func TestStoreStopsAskingWhenDenied(t *testing.T) {
	for errno, want := range map[sdk.Errno]int{sdk.ErrDenied: 1, sdk.ErrBudget: 1, sdk.ErrUnavailable: 1, sdk.ErrIO: 3} {
		h := sdktest.New(t)
		h.Deny("kb_put", "contacts", &sdk.Error{Errno: errno})
		o := outcome{digest: &digest{contacts: []contact{{email: "a@b.de"}, {email: "c@d.de"}, {email: "e@f.de"}}}}
		o.store()
		asked := 0
		for _, call := range h.Calls {
			if call.Args[0] == "contacts" {
				asked++
			}
		}
		if asked != want || o.contacts != 0 || o.artifacts != 1 {
			t.Errorf("%v: asked %d times, want %d; %+v", errno, asked, want, o)
		}
	}
}

func TestOddFiles(t *testing.T) {
	dir := tree(t, map[string]string{
		"utf16.md": "\xff\xfe-\x00 \x00[\x00 \x00]\x00 \x00\xe9\x00", "bom.md": "\ufeff- [ ] bom",
		"latin.MD": "- [ ] \xe9t\xe9",
		"big.md":   strings.Repeat("x", noteMax+1), "full.md": strings.Repeat("x", noteMax),
		"image.png": "- [ ] no", ".hidden/a.md": "- [ ] no", ".b.md": "- [ ] no", "empty.markdown": " \n",
	})
	if err := os.Symlink("/nonexistent", filepath.Join(dir, "dangling.md")); err != nil {
		t.Fatal(err)
	}
	d := collect(osDisk{}, filepath.ToSlash(dir), "/out")
	var texts []string
	for _, x := range d.todos {
		texts = append(texts, x.text)
	}
	if want := []string{"bom", "été", "é"}; !slices.Equal(texts, want) {
		t.Errorf("to-dos %q, want %q", texts, want)
	}
	if d.notes != 5 || d.empty != 1 {
		t.Errorf("%d notes, %d empty", d.notes, d.empty)
	}
	want := []problem{{"read", "big.md", errTooLarge.Error()}, {"read", "dangling.md", "does not exist"}}
	if !slices.Equal(d.problems, want) {
		t.Errorf("problems %v, want %v", d.problems, want)
	}
	if want := []string{"latin.MD: not UTF-8, read as Latin-1", "utf16.md: read as UTF-16"}; !slices.Equal(d.remarks,
		want) {
		t.Errorf("remarks %q", d.remarks)
	}
}

// What notes say is text in the digest: no markup, no image that viewing would
// fetch, no include that the next reader would follow; and nowhere a control
// character.
func TestQuotationsAreInert(t *testing.T) {
	h := sdktest.New(t)
	dir := tree(t, map[string]string{
		"a.md": "- [ ] <script>x</script> ![[/etc/shadow]] ![a](https://x.example) \x1b[2J\u202egpj ![![[[x]] !\x01[[y]]\n",
	})
	out := t.TempDir()
	summary := run(jail{read: map[string]string{"/n": dir}, write: map[string]string{"/o": out}}, "/n", "/o")
	md, err := os.ReadFile(filepath.Join(out, "digest.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := `- [ ] \<script>x\</script> !\[[/etc/shadow]] !\[a](https://x.example) [2Jgpj !\[!\[[[x]] !\[[y]]` + "\n"; !strings.Contains(string(md), want) {
		t.Errorf("digest.md:\n%s\nwant %s", md, want)
	}
	if again := parse("digest.md", string(md)); len(again.includes) != 0 {
		t.Errorf("reading the digest would include %v", again.includes)
	}
	for where, text := range map[string]string{"digest.md": string(md), "summary": summary, "result": string(h.Result)} {
		if strings.ContainsAny(text, "\x1b\x01\u202e") {
			t.Errorf("%s holds control characters: %q", where, text)
		}
	}
}

func TestWriteFileMakesTheFolder(t *testing.T) {
	dir := t.TempDir()
	if err := (osDisk{}).WriteFile(filepath.Join(dir, "new", "a"), []byte("x")); err != nil {
		t.Error(err)
	}
	if err := (osDisk{}).WriteFile(filepath.Join(dir, "no", "parent", "a"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder without a parent: %v", err)
	}
}
