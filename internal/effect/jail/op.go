package jail

// An Op is the WASI function on whose behalf the gate is asked.
type Op uint8

// The functions that reach a file.
const (
	PathOpen Op = iota
	PathFilestatGet
	PathFilestatSetTimes
	PathCreateDirectory
	PathRemoveDirectory
	PathUnlinkFile
	PathRename
	PathLink
	PathSymlink
	PathReadlink
	FdFilestatGet
	FdFilestatSetSize
	FdFilestatSetTimes
	FdAllocate
	FdRead
	FdPread
	FdWrite
	FdPwrite
	FdSeek
	FdSync
	FdDatasync
	FdFdstatSetFlags
	FdReaddir
	NumOps
)

var opNames = [NumOps]string{
	PathOpen:             "path_open",
	PathFilestatGet:      "path_filestat_get",
	PathFilestatSetTimes: "path_filestat_set_times",
	PathCreateDirectory:  "path_create_directory",
	PathRemoveDirectory:  "path_remove_directory",
	PathUnlinkFile:       "path_unlink_file",
	PathRename:           "path_rename",
	PathLink:             "path_link",
	PathSymlink:          "path_symlink",
	PathReadlink:         "path_readlink",
	FdFilestatGet:        "fd_filestat_get",
	FdFilestatSetSize:    "fd_filestat_set_size",
	FdFilestatSetTimes:   "fd_filestat_set_times",
	FdAllocate:           "fd_allocate",
	FdRead:               "fd_read",
	FdPread:              "fd_pread",
	FdWrite:              "fd_write",
	FdPwrite:             "fd_pwrite",
	FdSeek:               "fd_seek",
	FdSync:               "fd_sync",
	FdDatasync:           "fd_datasync",
	FdFdstatSetFlags:     "fd_fdstat_set_flags",
	FdReaddir:            "fd_readdir",
}

// String returns the function's name in wasi_snapshot_preview1.
func (o Op) String() string {
	if o >= NumOps {
		return "unknown"
	}
	return opNames[o]
}
