package bundles

import "bytes"

// Read verifies an archive that is in memory, as [Open] does one in a file. Name
// is what it is called to people; the bundle has no path.
func Read(name string, archive []byte) (*Bundle, error) {
	files, err := readArchive(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, locate(err, within(name))
	}
	return verify(files, within(name))
}
