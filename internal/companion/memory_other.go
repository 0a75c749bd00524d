//go:build !linux

package companion

import (
	"errors"
	"fmt"
	"os"
)

// Memory needs a system that starts programs from memory.
func (c *Companion) Memory() (*os.File, error) {
	return nil, fmt.Errorf("extracting the companion: %w", errors.ErrUnsupported)
}
