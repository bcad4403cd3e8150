package artifact

import (
	"errors"
	"fmt"

	"github.com/radome-io/fleeting-plugin-openstack/internal/reason"
)

// ErrInvalid says that bytes or a name are not what the format allows.
var ErrInvalid = errors.New("invalid artifact")

// ErrPlatform says that a platform is malformed or cannot be published.
var ErrPlatform = reason.New(reason.ErrInvalid, "platform", "invalid platform")

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %.500s", ErrInvalid, fmt.Sprintf(format, args...))
}
