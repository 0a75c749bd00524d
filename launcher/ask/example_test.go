package ask_test

import (
	"fmt"

	"runloop.dev/rlp/bundles"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/places"
	"runloop.dev/rlp/launcher/run"
)

// Why an agent may not write a domain, for who operates the host and for others.
func ExampleExplain() {
	const file = "/home/mara/.runloop/caps/overrides/digest.toml"
	base, _ := policy.ParseBase("policy.caps", []byte("[capabilities]\nkb_write = [\"notes\", \"drafts\"]\n"),
		policy.Options{})
	override, _ := policy.ParseLayer("override:digest.toml", file, []byte("[capabilities]\nkb_write = [\"notes\"]\n"),
		policy.Options{})
	s := &ask.Subject{
		Bundle: &bundles.Bundle{Manifest: &bundles.Manifest{}}, Override: file, Domains: policy.BuiltinDomains(),
		Policy: run.Policy{Base: base.Entries, Layers: []*caps.Layer{override.Layer}},
	}
	for _, of := range []*ask.Subject{s, s.Without(places.Of("/home/mara/.runloop"))} {
		e, err := ask.Explain(of, ask.Query{Text: "kb_write drafts"})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(e.Decision, "by", e.Layer)
		fmt.Println(e.Edits[0].Text)
	}
	// Output:
	// deny by override:digest.toml
	// add to line 2 of /home/mara/.runloop/caps/overrides/digest.toml, in the list that is there: kb_write = ["drafts"]
	// deny by override:digest.toml
	// add to line 2 of caps/overrides/digest.toml, in the list that is there: kb_write = ["drafts"]
}
