package policy

import (
	"strings"
	"testing"
)

// A list that is written as its only item is answered with how it is written.
func TestOneItemIsAListInBrackets(t *testing.T) {
	_, findings := ParseBase("policy.caps", []byte("[capabilities]\nfs = \"/a\"\n"), Options{})
	err := AsError(findings)
	if err == nil || !strings.Contains(err.Error(),
		`policy.caps:2:6: error: fs must be an array, not a string (write it in brackets: ["..."])`) {
		t.Error(err)
	}
}
