package journal

import (
	"errors"

	"syscall"
)

// errNotSameDevice is ERROR_NOT_SAME_DEVICE.
const errNotSameDevice = syscall.Errno(17)

func isCrossDevice(err error) bool { return errors.Is(err, errNotSameDevice) }
