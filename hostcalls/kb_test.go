package hostcalls

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/engine/abi"
)

// Keys and values are as long as they may be and no longer, and hold no control
// characters; a revision is decimal.
func TestKeysAndValuesAreBounded(t *testing.T) {
	r := maskRig(t, seeing...)
	r.mem = make([]byte, 4<<20)
	long, value := strings.Repeat("k", MaxKey), strings.Repeat("v", MaxValue)
	for _, c := range []struct {
		call  []string
		errno Errno // 0: it is done
		says  string
	}{
		{[]string{"kb_put", "contacts", long, value}, 0, ""},
		{[]string{"kb_put", "contacts", long + "k", "v"}, Inval, "1 to 1024 bytes"},
		{[]string{"kb_put", "contacts", "k", value + "v"}, TooBig, "at most 1 MiB"},
		{[]string{"kb_put", "contacts", "", value + "v"}, Inval, "1 to 1024 bytes"},
		{[]string{"kb_put", "contacts", "a\x7f", "v"}, Inval, "control characters"},
		{[]string{"kb_put", "contacts", "a\x1f", "v"}, Inval, "control characters"},
		{[]string{"kb_put", "contacts", "a\xff", "v"}, Inval, "UTF-8"},
		{[]string{"kb_put", "contacts", "a b", "v"}, 0, ""},
		{[]string{"kb_cas", "contacts", "new", "v", "0"}, 0, ""},
		{[]string{"kb_cas", "contacts", "new", "v", "0x1"}, Inval, "the revision is decimal"},
		{[]string{"kb_cas", "contacts", "new", "v", ""}, Inval, "the revision is decimal"},
		{[]string{"kb_cas", "contacts", "", "v", "1"}, Inval, "1 to 1024 bytes"},
		{[]string{"kb_list", "contacts", long}, 0, ""},
		{[]string{"kb_list", "contacts", long + "k"}, Inval, "1 to 1024 bytes"},
		{[]string{"kb_list", "contacts", "a\x00"}, Inval, "control characters"},
	} {
		n, text := r.whole(c.call[0], c.call[1:]...)
		if c.errno == 0 && n < 0 || c.errno != 0 && (Errno(-n) != c.errno || !strings.Contains(text, c.says)) {
			t.Errorf("%s %.30q: %d %.200s", c.call[0], c.call[2], n, text)
		}
	}
	if _, got := r.whole("kb_list", "contacts", "nobody"); got != "[]" {
		t.Errorf("an empty list is %s", got)
	}
	r.host.cfg.KB = r.kb // which cannot list
	if n, text := r.whole("kb_list", "contacts", ""); Errno(-n) != IO || strings.Contains(text, "/secret/path") {
		t.Errorf("%d %s", n, text)
	}
}

// That one domain is seen unmasked says nothing of another.
func TestRawIsOfOneDomain(t *testing.T) {
	r := maskRig(t, append(slices.Clone(seeing), "kb:read:notes")...)
	r.kb["contacts/bob"], r.kb["notes/bob"] = bobsValue, bobsValue
	for domain, want := range map[string]string{"contacts": bobsValue, "notes": "write to <bbb> soon"} {
		for range 2 {
			if _, got := r.whole("kb_get", domain, "bob"); got != want {
				t.Errorf("%s: %q, want %q", domain, got, want)
			}
		}
	}
}

// What a run may not name it may not name the second time either, nor after it
// has seen a part of a list; what is no mask is a key like any other.
func TestAskingAgainChangesNothing(t *testing.T) {
	r := maskRig(t, masking...)
	for range 3 {
		if n, text := r.whole("kb_get", "contacts", "bob@x"); Errno(-n) != Inval {
			t.Errorf("a personal key: %d %s", n, text)
		}
	}
	r.kb["contacts/bill@y"], r.kb["contacts/a < b"] = "another <bbb>", "less"
	r.whole("kb_list", "contacts", "bo")
	if n, text := r.whole("kb_get", "contacts", "<bbb>"); Errno(-n) != Inval || !strings.Contains(text, "several keys") {
		t.Errorf("a mask of two, after a list of one: %d %s", n, text)
	}
	if _, got := r.whole("kb_get", "contacts", "a < b"); got != "less" {
		t.Errorf("a key with a bracket: %q", got)
	}
	r.host.cfg.Masks = nil
	if n, text := r.whole("kb_put", "contacts", "a < b", "see <bbb>"); n < 0 || r.kb["contacts/a < b"] != "see <bbb>" {
		t.Errorf("without masks: %d %s", n, text)
	}
	if _, err := r.host.mask("contacts", []byte("x")); !errors.Is(err, errNoMasks) {
		t.Errorf("without masks a value is shown: %v", err)
	}
}

// A personal key may be put under by who sees masks alone; it is deleted and
// compared by who sees it, and by no other.
func TestPersonalKeysAreWritten(t *testing.T) {
	for _, c := range []struct {
		grants []string
		call   []string
		done   bool
	}{
		{masking, []string{"kb_put", "bob@y", "v"}, true},
		{masking, []string{"kb_put", "bob@x", "see <zzz>"}, false},
		{masking, []string{"kb_put", "plain", "see <bbb>"}, false}, // the stored one has what it stands for
		{masking, []string{"kb_put", "none", "see <bbb>"}, true},
		{masking, []string{"kb_delete", "bob@x"}, false},
		{seeing, []string{"kb_delete", "bob@x"}, true},
		{seeing, []string{"kb_put", "plain", "see <bbb>"}, true},
		{[]string{"kb:write:contacts"}, []string{"kb_put", "plain", "see <bbb>"}, true}, // it saw no mask
		{[]string{"kb:write:contacts", "kb:read:contacts_raw"}, []string{"kb_delete", "bob@x"}, false},
	} {
		r := maskRig(t, c.grants...)
		r.kb["contacts/plain"] = bobsValue
		n, text := r.whole(c.call[0], append([]string{"contacts"}, c.call[1:]...)...)
		if (n >= 0) != c.done || !c.done && (Errno(-n) != Inval || r.kb["contacts/bob@x"] != bobsValue ||
			r.kb["contacts/plain"] != bobsValue) {
			t.Errorf("%v %v: %d %s, stored %v", c.grants, c.call, n, text, r.kb)
		}
	}
}

// broken masks, and a store that answers only as far as it is told.
type brokenMasks struct {
	upperMasks
	key, value error
}

func (m brokenMasks) Mask(domain string, v []byte) ([]byte, error) {
	if m.value != nil {
		return nil, m.value
	}
	return m.upperMasks.Mask(domain, v)
}

func (m brokenMasks) MaskKey(domain, key string) (string, error) {
	if m.key != nil {
		return "", m.key
	}
	return m.upperMasks.MaskKey(domain, key)
}

type brokenKB struct {
	sortedKB
	get error
}

func (k brokenKB) Get(ctx context.Context, domain, key string) (KBValue, error) {
	if k.get != nil {
		return KBValue{}, k.get
	}
	return k.sortedKB.Get(ctx, domain, key)
}

// What cannot be masked or read is not shown, written over or deleted. What is
// gone since it was listed is left out.
func TestTroubleWithMasksShowsNothing(t *testing.T) {
	trouble := errors.New("the key of the masks cannot be read")
	for name, c := range map[string]struct {
		masks brokenMasks
		get   error
		calls [][]string
	}{
		"keys": {brokenMasks{key: trouble}, nil, [][]string{
			{"kb_get", "plain"},
			{"kb_list", ""},
			{"kb_delete", "plain"},
			{"kb_cas", "plain", "v", "1"},
			{"kb_put", "plain", "see <bbb>"},
			{"kb_get", "<bbb>"},
		}},
		"values": {brokenMasks{value: trouble}, nil, [][]string{
			{"kb_get", "plain"},
			{"kb_list", ""},
			{"kb_put", "plain", "see <bbb>"},
		}},
		"reads": {brokenMasks{}, trouble, [][]string{{"kb_get", "plain"}, {"kb_list", ""}, {"kb_put", "plain", "see <bbb>"}}},
	} {
		for _, call := range c.calls {
			r := maskRig(t, masking...)
			before := len(r.kb)
			r.host.cfg.Masks, r.host.cfg.KB = c.masks, brokenKB{sortedKB{r.kb}, c.get}
			n, text := r.whole(call[0], append([]string{"contacts"}, call[1:]...)...)
			if Errno(-n) != IO || strings.Contains(text, "nothing") || len(r.kb) != before ||
				r.kb["contacts/plain"] != "nothing" {
				t.Errorf("%s: %v: %d %s, stored %v", name, call, n, text, r.kb)
			}
		}
	}
	r := maskRig(t, masking...)
	r.host.cfg.KB = brokenKB{sortedKB{r.kb}, fs.ErrNotExist}
	if _, text := r.whole("kb_list", "contacts", ""); text != "[]" {
		t.Errorf("listed what is gone: %s", text)
	}
	r.host.cfg.KB = brokenKB{sortedKB{r.kb}, &Fail{Errno: Again, Hint: "later"}}
	if n, text := r.whole("kb_list", "contacts", ""); Errno(-n) != Again {
		t.Errorf("%d %s", n, text)
	}
	r.host.cfg.KB = r.kb // which cannot list
	if _, got := r.whole("kb_get", "contacts", "<bbb>"); got != "write to <bbb> soon" {
		t.Errorf("a mask of a list that was seen: %q", got)
	}
	r = maskRig(t, masking...)
	r.host.cfg.KB = r.kb
	if n, text := r.whole("kb_get", "contacts", "<bbb>"); Errno(-n) != IO {
		t.Errorf("a mask of no list: %d %s", n, text)
	}
}

// knowingKB holds values of which it knows that they are their own masked form, and
// revisions that differ.
type knowingKB struct{ sortedKB }

func (k knowingKB) Get(ctx context.Context, domain, key string) (KBValue, error) {
	v, err := k.sortedKB.Get(ctx, domain, key)
	v.Plain = true
	return v, err
}

func (k knowingKB) List(ctx context.Context, domain, prefix string) ([]KBEntry, error) {
	list, err := k.sortedKB.List(ctx, domain, prefix)
	for i := range list {
		list[i].Revision = uint64(len(list) - i)
	}
	return list, err
}

// What the store knows to be plain is not masked once more; entries of one mask
// are in the order of their revisions; and a list ends with its run.
func TestMaskedLists(t *testing.T) {
	r := maskRig(t, masking...)
	r.host.cfg.Masks, r.host.cfg.KB = brokenMasks{value: nil}, knowingKB{sortedKB{r.kb}}
	r.kb["contacts/bill@y"] = "1"
	if _, got := r.whole("kb_list", "contacts", "<b"); got != `[{"key":"<bbb>","revision":2,"size":29},{"key":"<bbb>","revision":3,"size":1}]` {
		t.Errorf("%s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if list, err := r.host.listMasked(ctx, kbReq{domain: "contacts"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", list, err)
	}
	// what is remembered of a list is held for the run, by its length
	key := strings.Repeat("k", 900)
	for range 200 {
		key += "x"
		r.kb["contacts/"+key[100:]+" a@x"] = "v"
	}
	h := &holding{most: 128 << 10}
	if _, err := r.host.listMasked(abi.WithHolder(t.Context(), h), kbReq{domain: "contacts"}); !h.refused ||
		!errors.Is(err, errHeld) {
		t.Errorf("%d bytes are held: %v", h.peak, err)
	}
	h = &holding{most: 1 << 30}
	if _, err := r.host.listMasked(abi.WithHolder(t.Context(), h), kbReq{domain: "contacts"}); err != nil {
		t.Errorf("control: %d bytes are held: %v", h.peak, err)
	}
}
