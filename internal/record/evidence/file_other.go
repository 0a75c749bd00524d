//go:build !unix

package evidence

import (
	"io/fs"
	"os"
)

const oNoFollow, oNonBlock = 0, 0

func owned(string, fs.FileInfo) error { return nil }

func tryLock(*os.File) (bool, error) { return true, nil }
