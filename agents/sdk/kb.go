package sdk

import (
	"strconv"
	"unsafe"

	"runloop.dev/rlp/agents/sdk/jsonlite"
)

// A KBEntry names one value of a knowledge base domain.
type KBEntry struct {
	Key      string
	Revision uint64
	Size     int // bytes
}

// A KBHit is one answer of a search, best first.
type KBHit struct {
	Key     string
	Score   float64
	Snippet string
}

// KBGet returns the value at key, or an error that is [ErrNotExist]. The
// capability is kb:read:domain.
func KBGet(domain, key string) ([]byte, error) { return AppendKBGet(nil, domain, key) }

// AppendKBGet is [KBGet] into a buffer: it appends the value to dst and returns
// the extended buffer. A loop that hands its buffer back as dst[:0], with 4 KiB
// of room or more, reads without allocating.
func AppendKBGet(dst []byte, domain, key string) ([]byte, error) {
	return call("kb_get", dst, func(out unsafe.Pointer, room uint32) int64 {
		return kbGet(domain, key, out, room)
	})
}

// KBPut stores value at key, whatever is there, and returns its new revision.
// The capability is kb:write:domain.
func KBPut(domain, key string, value []byte) (revision uint64, err error) {
	response, err := call("kb_put", nil, func(out unsafe.Pointer, room uint32) int64 {
		return kbPut(domain, key, view(value), out, room)
	})
	if err != nil {
		return 0, err
	}
	return number("kb_put", response)
}

// KBCAS stores value at key if the revision stored there is this one (0: if
// nothing is there) and returns the new revision; otherwise the error is
// [ErrConflict]. The capability is kb:write:domain.
func KBCAS(domain, key string, value []byte, revision uint64) (uint64, error) {
	expected := strconv.FormatUint(revision, 10)
	response, err := call("kb_cas", nil, func(out unsafe.Pointer, room uint32) int64 {
		return kbCAS(domain, key, view(value), expected, out, room)
	})
	if err != nil {
		return 0, err
	}
	return number("kb_cas", response)
}

// KBDelete removes key. The capability is kb:write:domain.
func KBDelete(domain, key string) error {
	_, err := call("kb_delete", nil, func(out unsafe.Pointer, room uint32) int64 {
		return kbDelete(domain, key, out, room)
	})
	return err
}

// KBList returns the entries of a domain whose keys begin with prefix. The
// capability is kb:read:domain.
func KBList(domain, prefix string) ([]KBEntry, error) {
	response, err := call("kb_list", nil, func(out unsafe.Pointer, room uint32) int64 {
		return kbList(domain, prefix, out, room)
	})
	if err != nil {
		return nil, err
	}
	objects, err := jsonlite.Objects(response)
	if err != nil {
		return nil, malformed("kb_list", err.Error())
	}
	entries := make([]KBEntry, len(objects))
	for i, o := range objects {
		revision, rerr := strconv.ParseUint(o["revision"], 10, 64)
		size, serr := strconv.Atoi(o["size"])
		if rerr != nil || serr != nil {
			return nil, malformed("kb_list", "an entry without revision or size")
		}
		entries[i] = KBEntry{Key: o["key"], Revision: revision, Size: size}
	}
	return entries, nil
}

// KBSearch returns up to k values of a domain, 1 to 100, that suit text best, best
// first. The capability is kb:read:domain; without kb:read:domain_raw personal
// data can neither be found nor seen.
func KBSearch(domain, text string, k int) ([]KBHit, error) {
	var query jsonlite.Writer
	query.Object()
	query.Key("text").String(text)
	query.Key("k").Int(int64(k))
	query.End()
	response, err := call("kb_search", nil, func(out unsafe.Pointer, room uint32) int64 {
		return kbSearch(domain, view(query.Bytes()), out, room)
	})
	if err != nil {
		return nil, err
	}
	objects, err := jsonlite.Objects(response)
	if err != nil {
		return nil, malformed("kb_search", err.Error())
	}
	hits := make([]KBHit, len(objects))
	for i, o := range objects {
		score, err := strconv.ParseFloat(o["score"], 64)
		if err != nil {
			return nil, malformed("kb_search", "a hit without a score")
		}
		hits[i] = KBHit{Key: o["key"], Score: score, Snippet: o["snippet"]}
	}
	return hits, nil
}
