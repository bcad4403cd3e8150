package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// object is any of the objects that this program takes.
type object struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metadata          `json:"metadata"`
	Spec       *podSpec          `json:"spec"`
	Data       map[string]string `json:"data"`
}

type metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type podSpec struct {
	RestartPolicy                string      `json:"restartPolicy"`
	HostNetwork                  bool        `json:"hostNetwork"`
	AutomountServiceAccountToken bool        `json:"automountServiceAccountToken"`
	EnableServiceLinks           bool        `json:"enableServiceLinks"`
	SecurityContext              podSecurity `json:"securityContext"`
	InitContainers               []container `json:"initContainers"`
	Containers                   []container `json:"containers"`
	Volumes                      []volume    `json:"volumes"`
	// TerminationGracePeriodSeconds is for who stops a Pod; here it ends itself.
	TerminationGracePeriodSeconds int64 `json:"terminationGracePeriodSeconds"`
}

type podSecurity struct {
	RunAsNonRoot   bool           `json:"runAsNonRoot"`
	RunAsUser      *int64         `json:"runAsUser"`
	RunAsGroup     *int64         `json:"runAsGroup"`
	FSGroup        *int64         `json:"fsGroup"`
	SeccompProfile seccompProfile `json:"seccompProfile"`
}

type seccompProfile struct {
	Type string `json:"type"`
}

type container struct {
	Name            string            `json:"name"`
	Image           string            `json:"image"`
	Command         []string          `json:"command"`
	Args            []string          `json:"args"`
	Env             []variable        `json:"env"`
	SecurityContext containerSecurity `json:"securityContext"`
	VolumeMounts    []volumeMount     `json:"volumeMounts"`
	Resources       json.RawMessage   `json:"resources"` // the scheduler's affair, and the cgroups'
}

type variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type containerSecurity struct {
	AllowPrivilegeEscalation *bool        `json:"allowPrivilegeEscalation"`
	ReadOnlyRootFilesystem   bool         `json:"readOnlyRootFilesystem"`
	Capabilities             capabilities `json:"capabilities"`
}

type capabilities struct {
	Drop []string `json:"drop"`
}

type volumeMount struct {
	Name      string `json:"name"`
	MountPath string `json:"mountPath"`
	SubPath   string `json:"subPath"`
	ReadOnly  bool   `json:"readOnly"`
}

// volume has exactly one of its sources.
type volume struct {
	Name      string           `json:"name"`
	EmptyDir  *json.RawMessage `json:"emptyDir"`
	ConfigMap *struct {
		Name string `json:"name"`
	} `json:"configMap"`
	Secret *struct {
		SecretName string `json:"secretName"`
	} `json:"secret"`
	Image *struct {
		Reference  string `json:"reference"`
		PullPolicy string `json:"pullPolicy"`
	} `json:"image"`
}

// objects are a Pod and the files that it mounts, by "KIND/NAME".
type objects struct {
	pod   *object
	files map[string]map[string]string
}

// decode reads the objects of a file. It wants one Pod, on the host's network
// and run once.
func decode(content []byte) (*objects, error) {
	found := &objects{files: map[string]map[string]string{}}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	for {
		one := &object{}
		err := decoder.Decode(one)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch {
		case one.Kind == "Pod" && one.Spec != nil && found.pod == nil:
			found.pod = one
		case one.Kind == "ConfigMap", one.Kind == "Secret":
			found.files[one.Kind+"/"+one.Metadata.Name] = one.Data
		default:
			return nil, fmt.Errorf("no use for %s %s", one.Kind, one.Metadata.Name)
		}
	}
	if found.pod == nil {
		return nil, errors.New("no Pod")
	}
	if spec := found.pod.Spec; !spec.HostNetwork || spec.RestartPolicy != "Never" || spec.AutomountServiceAccountToken || spec.EnableServiceLinks {
		return nil, errors.New("the Pod is not one that runs once, on the host's network and without a token")
	}
	return found, nil
}
