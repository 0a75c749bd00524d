//go:build !linux

package lane

// BoundLabels say that nothing bounds programs here. On Windows a job object
// would end a tree and bound its memory.
func BoundLabels() (memory, pids Label) {
	l := Label{Level: Unsupported, Why: "control groups need Linux, and job objects of Windows are not used"}
	return l, l
}
