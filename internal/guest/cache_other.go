//go:build !unix

package guest

import "io/fs"

// distrust refuses everything where owners and modes cannot be read.
func distrust(fs.FileInfo) string { return "ownership cannot be checked on this system" }
