//go:build !unix

package guest

import (
	"context"
	"io/fs"
)

// distrust refuses everything where owners and modes cannot be read.
func distrust(fs.FileInfo) string { return "ownership cannot be checked on this system" }

// claim is nothing here: there is no cache to wait for.
type claim struct{}

func (*cache) claim(context.Context, Bound) (claim, error) { return claim{}, nil }

func (claim) end(error) {}
