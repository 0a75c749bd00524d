package hostcalls

import (
	"time"
)

// Bounds of a request and its answer.
const (
	MaxRequestHead  = 64 << 10 // bytes of JSON
	MaxRequestBody  = 64 << 20 // bytes
	MaxResponseBody = 64 << 20 // bytes, after decompression
	MaxRedirects    = 5

	defaultTimeout = 30 * time.Second
	longestTimeout = 10 * time.Minute
)

// Bounds of a request and of what comes back.
const (
	MaxExecRequest = 1 << 20 // bytes of JSON
	MaxExecArgs    = 4096
	// MaxExecOutput is what the guest gets of each stream, in bytes.
	MaxExecOutput = 1 << 20
	// maxSecret is more than the longest value of a secret, encoded.
	maxSecret = 64 << 10
)

// Bounds of what a guest may store.
const (
	MaxKey   = 1024
	MaxValue = 1 << 20
)

// MaxArguments bounds what one call may pass, in bytes: a largest value and
// whatever names it. More is not even copied. A call whose def says so takes
// more, and gives up the copy when it is over.
const MaxArguments = MaxValue + 64<<10
