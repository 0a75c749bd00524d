package sdk_test

import (
	"errors"
	"os"

	"runloop.dev/rlp/agents/sdk"
)

// The whole of an agent: read what the operator named, keep something, return
// something, and carry on where the policy says no.
func Example() {
	defer sdk.SetBackend(demo{})() // a test's stand-in; a guest has its host

	if _, ok := sdk.Param("notes"); !ok {
		os.Stdout.WriteString("no notes were named\n")
	}
	switch _, err := sdk.KBPut("contacts", "ada", []byte(`{"name":"Ada"}`)); {
	case errors.Is(err, sdk.ErrDenied):
		os.Stdout.WriteString("contact not kept: " + sdk.Why(err) + "\n")
	case err != nil:
		os.Stdout.WriteString(err.Error() + "\n")
	}
	if err := sdk.Result([]byte(`{"notes":0}`)); err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
	}
	// Output:
	// no notes were named
	// contact not kept: denied (domain_not_permitted)
}

// A reader of many values hands its buffer back.
func ExampleAppendKBGet() {
	defer sdk.SetBackend(demo{})()

	buf := make([]byte, 0, 64<<10)
	for _, key := range []string{"a", "b"} {
		var err error
		if buf, err = sdk.AppendKBGet(buf[:0], "notes", key); err != nil {
			os.Stdout.WriteString(sdk.Why(err) + "\n")
			continue
		}
		os.Stdout.WriteString(string(buf) + "\n")
	}
	// Output:
	// value of a
	// value of b
}

// demo denies writing and answers everything else.
type demo struct{}

func (demo) Call(op string, args ...string) ([]byte, error) {
	if op == "kb_put" {
		return nil, &sdk.Error{Errno: sdk.ErrDenied, Capability: "kb:write:" + args[0], Reason: "domain_not_permitted"}
	}
	if op == "kb_get" {
		return []byte("value of " + args[1]), nil
	}
	return nil, nil
}
