package wasi

import (
	"context"
	"strings"

	"runloop.dev/rlp/internal/engine/abi"
)

// method is one function of WASI over its raw parameters. It answers an errno,
// or sets System.end.
type method func(s *System, ctx context.Context, mem memory, a []uint64) Errno

// function is one row of the table: the signature is a letter a parameter,
// i for i32 and I for i64.
type function struct {
	name, sig string
	call      method
}

func (f function) params() []abi.Type {
	out := make([]abi.Type, len(f.sig))
	for i, c := range f.sig {
		out[i] = abi.I32
		if c == 'I' {
			out[i] = abi.I64
		}
	}
	return out
}

func (f function) results() []abi.Type {
	if f.name == "proc_exit" {
		return nil
	}
	return []abi.Type{abi.I32}
}

// functions is wasi_snapshot_preview1, whole, in its specification's order.
func functions() []function {
	return []function{
		{"args_get", "ii", argsGet},
		{"args_sizes_get", "ii", argsSizesGet},
		{"environ_get", "ii", environGet},
		{"environ_sizes_get", "ii", environSizesGet},
		{"clock_res_get", "ii", clockResGet},
		{"clock_time_get", "iIi", clockTimeGet},
		{"fd_advise", "iIIi", fdAdvise},
		{"fd_allocate", "iII", fdAllocate},
		{"fd_close", "i", fdClose},
		{"fd_datasync", "i", fdDatasync},
		{"fd_fdstat_get", "ii", fdFdstatGet},
		{"fd_fdstat_set_flags", "ii", fdFdstatSetFlags},
		{"fd_fdstat_set_rights", "iII", fdFdstatSetRights},
		{"fd_filestat_get", "ii", fdFilestatGet},
		{"fd_filestat_set_size", "iI", fdFilestatSetSize},
		{"fd_filestat_set_times", "iIIi", fdFilestatSetTimes},
		{"fd_pread", "iiiIi", fdPread},
		{"fd_prestat_get", "ii", fdPrestatGet},
		{"fd_prestat_dir_name", "iii", fdPrestatDirName},
		{"fd_pwrite", "iiiIi", fdPwrite},
		{"fd_read", "iiii", fdRead},
		{"fd_readdir", "iiiIi", fdReaddir},
		{"fd_renumber", "ii", fdRenumber},
		{"fd_seek", "iIii", fdSeek},
		{"fd_sync", "i", fdSync},
		{"fd_tell", "ii", fdTell},
		{"fd_write", "iiii", fdWrite},
		{"path_create_directory", "iii", pathCreateDirectory},
		{"path_filestat_get", "iiiii", pathFilestatGet},
		{"path_filestat_set_times", "iiiiIIi", pathFilestatSetTimes},
		{"path_link", "iiiiiii", pathLink},
		{"path_open", "iiiiiIIii", pathOpen},
		{"path_readlink", "iiiiii", pathReadlink},
		{"path_remove_directory", "iii", pathRemoveDirectory},
		{"path_rename", "iiiiii", pathRename},
		{"path_symlink", "iiiii", pathSymlink},
		{"path_unlink_file", "iii", pathUnlinkFile},
		{"poll_oneoff", "iiii", pollOneoff},
		{"proc_exit", "i", procExit},
		{"proc_raise", "i", procRaise},
		{"sched_yield", "", schedYield},
		{"random_get", "ii", randomGet},
		{"sock_accept", "iii", sockAny},
		{"sock_recv", "iiiiii", sockAny},
		{"sock_send", "iiiii", sockAny},
		{"sock_shutdown", "ii", sockAny},
	}
}

// Funcs is every function of WASI preview 1, bound to s.
func (s *System) Funcs() []abi.Func {
	list := functions()
	out := make([]abi.Func, len(list))
	for i, f := range list {
		out[i] = abi.Func{
			Module: Module, Name: f.name,
			Params: f.params(), Results: f.results(),
			Call: s.bind(f.name, f.call), Cost: costOf(f.name), Moved: &s.moved,
		}
	}
	return out
}

// bind turns a method into what an engine calls: the errno is the result,
// unless the run ends here.
func (s *System) bind(name string, call method) func(context.Context, []byte, []uint64) error {
	starting := isStart(name)
	return func(ctx context.Context, mem []byte, stack []uint64) error {
		if !starting {
			s.begun = true
		}
		errno := call(s, ctx, mem, stack)
		if s.isNone {
			s.tellRejected(name)
		}
		if s.end != nil {
			return s.end
		}
		stack[0] = uint64(errno)
		return nil
	}
}

// isStart reports whether the runtimes of languages make a call before the program
// that they run begins.
func isStart(name string) bool {
	for _, p := range []string{"args_", "environ_", "random_", "fd_fdstat_", "fd_prestat_", "sched_yield", "clock_"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}
