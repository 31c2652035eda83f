//go:build !linux && !darwin

package walk

import "os"

// Dir walks a directory of the operating system.
func Dir(root string, o Options) error { return FS(os.DirFS(root), o) }
