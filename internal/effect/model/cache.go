package model

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
)

// What a cache holds at most.
const (
	cacheEntries = 256
	cacheBytes   = 16 << 20
)

// A digest is all of a request that an answer can depend on.
type digest [sha256.Size]byte

// digestOf is the digest of r, asked of the model called name, however r names it.
func digestOf(name string, r Request) (digest, bool) {
	of := []any{name, "embed", nil}
	switch r := r.(type) {
	case *CompleteRequest:
		nameless := *r
		nameless.Model = ""
		of[1], of[2] = "complete", nameless
	case *EmbedRequest:
		nameless := *r
		nameless.Model = ""
		of[2] = nameless
	}
	text, err := json.Marshal(of)
	return sha256.Sum256(text), err == nil
}

// repeatable reports whether the same request gets the same answer: vectors,
// what is asked at temperature 0, and whatever the echo says.
func repeatable(rt route, r Request) bool {
	c, isComplete := r.(*CompleteRequest)
	return !isComplete || rt.isEcho || c.Temperature != nil && *c.Temperature == 0
}

// A cache keeps answers for one broker, and so for one run or tenant, in memory.
type cache struct {
	entries map[digest]entry
	order   []digest // oldest first
	bytes   int
}

type entry struct {
	answer any // *Answer or *Embeddings
	size   int
}

func (c *cache) get(d digest) (any, bool) {
	e, ok := c.entries[d]
	return e.answer, ok
}

func (c *cache) put(d digest, answer any, size int) {
	if _, there := c.entries[d]; there || size > cacheBytes/4 {
		return
	}
	for len(c.order) >= cacheEntries || c.bytes+size > cacheBytes {
		oldest := c.order[0]
		c.bytes -= c.entries[oldest].size
		delete(c.entries, oldest)
		c.order = slices.Delete(c.order, 0, 1)
	}
	if c.entries == nil {
		c.entries = map[digest]entry{}
	}
	c.entries[d] = entry{answer, size}
	c.order = append(c.order, d)
	c.bytes += size
}
