package kb_test

import (
	"context"
	"fmt"
	"os"

	"runloop.dev/rlp/kb"
)

// A value carries where it comes from: the agent that wrote it, in which run, and
// whether that run had seen untrusted content.
func Example() {
	home, err := os.MkdirTemp("", "kb-example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(home)
	ctx := context.Background()
	store, err := kb.Open(ctx, kb.Options{Home: home})
	if err != nil {
		panic(err)
	}
	defer store.Close()

	view := store.View(kb.Origin{Agent: "digest", Run: "1", Label: kb.Untrusted})
	if _, err := view.Put(ctx, "notes", "monday", []byte("the harbour opens at nine")); err != nil {
		panic(err)
	}
	hits, err := view.Search(ctx, kb.Query{Domain: "notes", Text: "harbour"})
	if err != nil {
		panic(err)
	}
	for _, h := range hits {
		fmt.Println(h.Key)
	}
	v, err := view.Get(ctx, "notes", "monday")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s (written by %s, %s)\n", v.Bytes, v.Origin.Agent, v.Origin.Label)
	// Output:
	// monday
	// the harbour opens at nine (written by digest, untrusted)
}
