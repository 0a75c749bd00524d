package hostcalls

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
)

// upperMasks mask every word that has an @ in it, by its length and first
// letter alone: what is judged here is who sees masks, not what they are.
type upperMasks struct{}

func (upperMasks) Mask(_ string, v []byte) ([]byte, error) {
	words := strings.Fields(string(v))
	for i, w := range words {
		if strings.Contains(w, "@") {
			words[i] = "<" + strings.Repeat(strings.ToLower(w)[:1], 3) + ">"
		}
	}
	return []byte(strings.Join(words, " ")), nil
}

func (m upperMasks) MaskKey(domain, key string) (string, error) {
	v, err := m.Mask(domain, []byte(key))
	return string(v), err
}

func (upperMasks) Marks(text []byte) []string {
	var marks []string
	for _, w := range strings.Fields(string(text)) {
		if len(w) == 5 && w[0] == '<' && w[4] == '>' && w[1] == w[2] {
			marks = append(marks, w)
		}
	}
	return marks
}

// sortedKB is memoryKB with lists and revisions that are compared.
type sortedKB struct{ memoryKB }

func (m sortedKB) List(_ context.Context, domain, prefix string) ([]KBEntry, error) {
	var list []KBEntry
	for k, v := range m.memoryKB {
		if key, ok := strings.CutPrefix(k, domain+"/"); ok && strings.HasPrefix(key, prefix) {
			list = append(list, KBEntry{key, 1, len(v), true})
		}
	}
	slices.SortFunc(list, func(a, b KBEntry) int { return strings.Compare(a.Key, b.Key) })
	return list, nil
}

func (m sortedKB) CAS(ctx context.Context, c KBChange, revision uint64) (uint64, error) {
	if _, err := m.Get(ctx, c.Domain, c.Key); (revision == 0) != errors.Is(err, fs.ErrNotExist) {
		return 0, &Fail{Errno: Again, Hint: "another"}
	}
	return m.Put(ctx, c)
}

func (m sortedKB) Delete(ctx context.Context, c KBChange) error {
	if _, err := m.Get(ctx, c.Domain, c.Key); err != nil {
		return err
	}
	return m.memoryKB.Delete(ctx, c)
}

func (m sortedKB) Search(context.Context, KBQuery) ([]KBHit, error) {
	return []KBHit{{Key: "bob@x", Score: 1, Snippet: "s"}}, nil
}

const bobsValue = "write to bob@example.org soon"

// maskRig is a rig with two people in contacts, whose keys are personal.
func maskRig(t testing.TB, grants ...string) *rig {
	r := newRig(t, grants...)
	r.host.cfg.Masks, r.host.cfg.KB = upperMasks{}, sortedKB{r.kb}
	r.kb["contacts/bob@x"], r.kb["contacts/alice@x"], r.kb["contacts/plain"] = bobsValue, "a@b", "nothing"
	return r
}

var (
	masking = []string{"kb:read:contacts", "kb:write:contacts"}
	seeing  = append(slices.Clone(masking), "kb:read:contacts_raw")
)

func (r *rig) whole(name string, args ...string) (int64, string) {
	n, text := r.call(name, args...)
	if n > outRoom {
		text += r.rest()
	}
	return n, text
}

// A value is masked unless the run holds X_raw beside X, at that moment: not by
// kb_read = true, not by another domain's, not alone, not once it is taken away.
//
//rlp:holds R25 R26 R27
func TestValuesAreMaskedWithoutRaw(t *testing.T) {
	const shown = "write to <bbb> soon"
	for _, c := range []struct {
		grants []string
		want   string
	}{
		{[]string{"kb:read:contacts"}, shown},
		{[]string{"kb:read:*"}, shown},
		{[]string{"kb:read:contacts", "kb:read:drafts_raw"}, shown},
		{[]string{"kb:read:contacts", "kb:read:contacts_raw"}, bobsValue}, // the control
		{[]string{"kb:read:contacts_raw"}, ""},
		{[]string{"kb:read:notes", "kb:read:notes_raw"}, ""},
	} {
		r := maskRig(t, c.grants...)
		r.kb["contacts/bob"] = bobsValue
		n, got := r.whole("kb_get", "contacts", "bob")
		if c.want == "" {
			if n != -int64(Acces) {
				t.Errorf("%v: %d %q, want a denial", c.grants, n, got)
			}
			continue
		}
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.grants, got, c.want)
		}
	}
	r := maskRig(t, seeing...)
	r.kb["contacts/bob"] = bobsValue
	if _, got := r.whole("kb_get", "contacts", "bob"); got != bobsValue {
		t.Fatalf("control: %q", got)
	}
	deny := &caps.Layer{Name: "later", Deny: []caps.Entry{{Grant: grantOf(t, "kb:read:contacts_raw")}}}
	if err := r.gate.Hold(deny); err != nil {
		t.Fatal(err)
	}
	if _, got := r.whole("kb_get", "contacts", "bob"); got != shown {
		t.Errorf("after contacts_raw was taken away: %q", got)
	}
}

// That a run sees raw values is a decision of its own in the record, once for
// each domain; that it sees masks is no denial.
func TestSeeingRawIsRecorded(t *testing.T) {
	r := maskRig(t, seeing...)
	r.whole("kb_get", "contacts", "plain")
	r.whole("kb_list", "contacts", "")
	if len(r.log.Decisions) != 3 || r.log.Decisions[1].Target != "contacts_raw" || r.log.Decisions[1].Deny {
		t.Errorf("raw: %+v", r.log.Decisions)
	}
	r = maskRig(t, masking...)
	r.whole("kb_get", "contacts", "plain")
	if len(r.log.Decisions) != 1 {
		t.Errorf("masked: %+v", r.log.Decisions)
	}
}

// A list shows masks, in their order, with the sizes of what would be read, and
// filters by them: nothing of it depends on what they stand for.
//
//rlp:holds R26
func TestListIsNoOracle(t *testing.T) {
	list := func(prefix string, grants ...string) string {
		r := maskRig(t, grants...)
		n, text := r.whole("kb_list", "contacts", prefix)
		var entries []KBEntry
		if err := json.Unmarshal([]byte(text), &entries); n < 0 || err != nil {
			t.Fatalf("%q: %d %q %v", prefix, n, text, err)
		}
		var keys []string
		for _, e := range entries {
			keys = append(keys, e.Key)
			want := map[string]int{
				"<bbb>": len("write to <bbb> soon"), "<aaa>": len("<aaa>"), "plain": len("nothing"),
				"bob@x": len(bobsValue), "alice@x": len("a@b"),
			}[e.Key]
			if e.Size != want {
				t.Errorf("%s: size %d, want %d", e.Key, e.Size, want)
			}
		}
		return strings.Join(keys, " ")
	}
	for prefix, want := range map[string]string{
		"": "<aaa> <bbb> plain", "b": "", "bob@": "", "a": "", "<b": "<bbb>",
		"<": "<aaa> <bbb>", "pl": "plain",
	} {
		if got := list(prefix, masking...); got != want {
			t.Errorf("%q: %q, want %q", prefix, got, want)
		}
	}
	for prefix, want := range map[string]string{"": "alice@x bob@x plain", "bob@": "bob@x"} { // the control
		if got := list(prefix, seeing...); got != want {
			t.Errorf("raw %q: %q, want %q", prefix, got, want)
		}
	}
	// Stored in another order, they are shown in the same.
	r := maskRig(t, masking...)
	r.kb["contacts/zed a@x"], r.kb["contacts/zed B@x"] = "1", "2"
	if _, text := r.whole("kb_list", "contacts", "zed"); !strings.Contains(text, `"zed <aaa>"`) ||
		strings.Index(text, "<aaa>") > strings.Index(text, "<bbb>") {
		t.Errorf("the order is that of what is stored: %s", text)
	}
}

// Whoever sees masks learns nothing from naming a person: there or not, each
// call answers the same. Those who see data are told (the control).
//
//rlp:holds R26
func TestPersonalKeysAreNoOracle(t *testing.T) {
	for _, call := range [][]string{
		{"kb_get"},
		{"kb_delete"},
		{"kb_cas", "v", "0"},
		{"kb_cas", "v", "1"},
		{"kb_put", "v"},
		{"kb_put", "see <bbb>"},
		{"kb_put", "see <zzz>"},
	} {
		ask := func(key string, grants []string) string {
			r := maskRig(t, grants...)
			n, text := r.whole(call[0], append([]string{"contacts", key}, call[1:]...)...)
			return strings.ReplaceAll(text, key, "KEY") + " " + Errno(-n).String()
		}
		for _, grants := range [][]string{masking, {"kb:write:contacts"}} {
			if there, missing := ask("bob@x", grants), ask("bob@y", grants); there != missing {
				t.Errorf("%v %v: %q where it is there, %q where it is not", call, grants, there, missing)
			}
		}
		if there, missing := ask("bob@x", seeing), ask("bob@y", seeing); call[0] != "kb_put" && there == missing {
			t.Errorf("control: %v raw: both %q", call, there)
		}
	}
	r := maskRig(t, masking...)
	if n, d := r.denial("kb_get", "contacts", "bob@x"); n != -int64(Inval) || !strings.Contains(d.Hint,
		`kb_read = ["contacts", "contacts_raw"]`) {
		t.Errorf("%d %+v", n, d)
	}
}

// A mask from a list names its value in every call, for as long as it names one.
func TestMaskedKeysAreUsable(t *testing.T) {
	r := maskRig(t, masking...)
	if _, got := r.whole("kb_get", "contacts", "<bbb>"); got != "write to <bbb> soon" {
		t.Errorf("get: %q", got)
	}
	if n, got := r.whole("kb_put", "contacts", "<aaa>", "new"); n < 0 || r.kb["contacts/alice@x"] != "new" {
		t.Errorf("put: %d %q %v", n, got, r.kb)
	}
	if n, _ := r.whole("kb_delete", "contacts", "<aaa>"); n != 0 || len(r.kb) != 2 {
		t.Errorf("delete: %d %v", n, r.kb)
	}
	if n, _ := r.whole("kb_get", "contacts", "<aaa>"); n != -int64(Noent) {
		t.Errorf("get of what is gone: %d", n)
	}
	for _, call := range [][]string{{"kb_get"}, {"kb_put", "v"}, {"kb_delete"}, {"kb_cas", "v", "0"}} {
		if n, _ := r.whole(call[0], append([]string{"contacts", "<zzz>"}, call[1:]...)...); n != -int64(Noent) {
			t.Errorf("%v of a mask that names nothing: %d", call, n)
		}
	}
	r.kb["contacts/Bob@y"] = "another"
	r.whole("kb_list", "contacts", "")
	if n, _ := r.whole("kb_get", "contacts", "<bbb>"); n != -int64(Inval) {
		t.Errorf("get of a mask that names two: %d", n)
	}
	w := maskRig(t, "kb:write:contacts")
	if n, _ := w.whole("kb_put", "contacts", "<bbb>", "x"); n != -int64(Inval) || w.kb["contacts/bob@x"] != bobsValue {
		t.Errorf("who may not read writes by a mask: %d", n)
	}
	if _, got := maskRig(t, seeing...).whole("kb_get", "contacts", "<bbb>"); got != bobsValue {
		t.Errorf("raw, by a mask: %q", got)
	}
}

// What was read masked is not written over what it was made of; masks of other
// places, and those that are stored as such, are only text.
//
//rlp:holds R26 R28
func TestMasksDoNotReplaceData(t *testing.T) {
	r := maskRig(t, masking...)
	for _, call := range [][]string{{"kb_put"}, {"kb_cas", "1"}} {
		args := append([]string{"contacts", "<bbb>", "write to <bbb> later"}, call[1:]...)
		if n, _ := r.whole(call[0], args...); n != -int64(Inval) || r.kb["contacts/bob@x"] != bobsValue {
			t.Errorf("%v: %d, stored %q", call, n, r.kb["contacts/bob@x"])
		}
	}
	for _, c := range []struct{ key, value string }{
		{"plain", "see <bbb>"}, {"new", "see <bbb>"}, {"<bbb>", "see <aaa>"}, {"<bbb>", "no mask"},
	} {
		r := maskRig(t, masking...)
		if n, text := r.whole("kb_put", "contacts", c.key, c.value); n < 0 {
			t.Errorf("%s = %q: %d %s", c.key, c.value, n, text)
		}
	}
	r = maskRig(t, masking...)
	r.kb["contacts/plain"] = "see <bbb>" // a mask that is stored
	if n, _ := r.whole("kb_put", "contacts", "plain", "see <bbb> again"); n < 0 {
		t.Errorf("a mask that was stored as such: %d", n)
	}
}

// Search names what it found by masks.
//
//rlp:holds R26
func TestSearchMasksKeys(t *testing.T) {
	if _, got := maskRig(t, masking...).whole("kb_search", "contacts", `{"text":"x"}`); !strings.Contains(got,
		`"<bbb>"`) || strings.Contains(got, "bob") {
		t.Errorf("masked: %s", got)
	}
	if _, got := maskRig(t, seeing...).whole("kb_search", "contacts", `{"text":"x"}`); !strings.Contains(got, `"bob@x"`) {
		t.Errorf("control: %s", got)
	}
}

// Without a knowledge base every call says so.
func TestWithoutAKnowledgeBase(t *testing.T) {
	r := maskRig(t, masking...)
	r.host.cfg.KB = nil
	for _, call := range [][]string{
		{"kb_get", "contacts", "k"},
		{"kb_list", "contacts", ""},
		{"kb_search", "contacts", `{"text":"x"}`},
		{"kb_put", "contacts", "k", "v"},
		{"kb_cas", "contacts", "k", "v", "0"},
		{"kb_delete", "contacts", "k"},
	} {
		if n, text := r.whole(call[0], call[1:]...); n != -int64(Notsup) {
			t.Errorf("%v: %d %s", call, n, text)
		}
	}
}

// Without masks nothing is shown that would have to be masked.
func TestWithoutMasksNothingIsShown(t *testing.T) {
	r := maskRig(t, masking...)
	r.host.cfg.Masks = nil
	for _, call := range [][]string{{"kb_get", "contacts", "plain"}, {"kb_list", "contacts", ""}, {
		"kb_search", "contacts",
		`{"text":"x"}`,
	}} {
		if n, text := r.whole(call[0], call[1:]...); n != -int64(Notsup) {
			t.Errorf("%v: %d %s", call, n, text)
		}
	}
	r = maskRig(t, seeing...)
	r.host.cfg.Masks = nil
	if _, got := r.whole("kb_get", "contacts", "plain"); got != "nothing" {
		t.Errorf("control: %q", got)
	}
}
