package lane

import (
	"time"

	"golang.org/x/sys/unix"
)

// killTime is how long what was killed may take to be gone.
const killTime = 5 * time.Second

// pause gives what was killed a moment to end.
func pause() { _, _ = unix.Poll(nil, 1) }
