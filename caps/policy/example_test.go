package policy_test

import (
	"fmt"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
)

// A policy and an override are read from bytes. What is wrong in them is a list of
// findings with their places, and nothing is half read.
func Example() {
	asked, findings := policy.ParseBase("policy.caps",
		[]byte("[capabilities]\nfs = [\"/srv/notes\"]\nnet = [\"api.example.com\"]\n"), policy.Options{})
	if policy.HasErrors(findings) {
		fmt.Println(findings)
		return
	}
	taken, findings := policy.ParseLayer("override", "digest.toml", []byte("[capabilities]\nnet = []\n"), policy.Options{})
	if policy.HasErrors(findings) {
		fmt.Println(findings)
		return
	}
	base, err := caps.Base(asked.Entries, asked.Limits)
	if err != nil {
		fmt.Println(err)
		return
	}
	held, _, err := base.Narrow(taken.Layer)
	fmt.Println(held.Grants(), err)
	// Output:
	// [fs:read:/srv/notes] <nil>
}

// A key that is not known is an error that says which one was meant.
func ExampleParseLayer() {
	_, findings := policy.ParseLayer("override", "digest.toml", []byte("[capabilities]\nfs_wr = []\n"), policy.Options{})
	for _, f := range findings {
		fmt.Println(f)
	}
	// Output:
	// digest.toml:2:1: error: unknown key "fs_wr" in [capabilities] (did you mean "fs_rw"?) [unknown_key]
}
