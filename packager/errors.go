package packager

import (
	"errors"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
)

// The errors that callers tell apart with [errors.Is]. Errors of the registry
// are passed on as they are.
var (
	// ErrVersion says that a version is not MAJOR.MINOR.PATCH[-prerelease].
	ErrVersion = errors.New("invalid version")
	// ErrReference says that a reference cannot be published to.
	ErrReference = errors.New("invalid reference")
	// ErrPublished says that the version is published already, with other
	// content.
	ErrPublished = errors.New("version is published with other content")
	// ErrAliasTaken says that the name of an alias holds something else.
	ErrAliasTaken = errors.New("the alias holds something else")
	// ErrExists says that the output folder holds something else.
	ErrExists = errors.New("output folder is not empty and holds no OCI layout")
	// ErrImmutable says that a tag is on other content, and the registry does not
	// move it.
	ErrImmutable = ociregistry.ErrImmutable
	// ErrNotPlugin says that an artifact is not a fleeting plugin.
	ErrNotPlugin = errors.New("not a fleeting plugin")
)
