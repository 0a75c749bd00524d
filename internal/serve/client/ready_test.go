package client

import (
	"context"
	"strings"
	"syscall"
	"testing"
)

// Why nobody answers is said in words.
func TestNobodyIsReady(t *testing.T) {
	for err, want := range map[error]string{
		syscall.EACCES:           "another user's",
		context.DeadlineExceeded: "does not answer",
		syscall.EINVAL:           "invalid argument",
	} {
		if told := nobody("/s", err); !strings.Contains(told.Error(), want) {
			t.Error(told)
		}
	}
}
