package plugin

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/hashicorp/go-hclog"
)

// Intent is what the plugin would ask the cloud for.
type Intent struct {
	// Request is the body of the request that creates one server, with the
	// size of the user data in place of the data.
	Request any `json:"request"`
	// Room is how many such servers fit into what the project's limits leave;
	// -1 when nothing limits them.
	Room int `json:"room"`
	// Limit is what runs out first.
	Limit string `json:"limit"`
	// Doubts are what may keep the cloud from creating such a server all the
	// same, as [Check] would tell.
	Doubts []Finding `json:"doubts,omitempty"`
}

// Plan returns what creating a server would ask for, and how many fit into the
// project's limits. It changes nothing.
func Plan(ctx context.Context, config Config, opts ...Option) (Intent, error) {
	o, found, err := openToCreate(ctx, config, opts)
	if err != nil {
		return Intent{}, err
	}
	defer o.client.Close()
	limits, err := o.client.Limits(ctx)
	if err != nil {
		return Intent{}, err
	}
	spec := o.spec(config.Name+"-RANDOM", found, found.image)
	size := base64.StdEncoding.EncodedLen(len(spec.UserData))
	spec.UserData = nil
	intent := Intent{Request: spec.Request(), Doubts: found.doubts}
	for _, f := range found.disk(config.Server) {
		if !f.OK {
			intent.Doubts = append(intent.Doubts, f)
		}
	}
	if size > 0 {
		intent.Request = map[string]any{"request": spec.Request(), "user_data": fmt.Sprintf("%d of %d characters", size, maxUserData)}
	}
	intent.Room, intent.Limit = limits.Room(found.flavor)
	return intent, nil
}

// openToCreate connects and finds everything that servers are made of.
func openToCreate(ctx context.Context, config Config, opts []Option) (*openstack, resources, error) {
	if err := config.check(); err != nil {
		return nil, resources{}, err
	}
	logger := hclog.NewNullLogger()
	client, err := dial(ctx, config, New(opts...).opts, logger)
	if err != nil {
		return nil, resources{}, err
	}
	o := newOpenStack(client, config, logger)
	o.supply.lookUp(ctx)
	found, err := o.supply.get()
	if err != nil {
		client.Close()
	}
	return o, found, err
}
