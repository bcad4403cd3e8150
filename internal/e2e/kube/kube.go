// Package kube judges Kubernetes manifests as the API server does: it decodes
// them strictly, sets the defaults, validates, and evaluates the restricted Pod
// Security standard. The code that decides is Kubernetes' own.
//
// It starts no server and no container.
package kube

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // Deployment, for the scheme
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // Pod, for the scheme
	"k8s.io/kubernetes/pkg/apis/core/validation"
	psaapi "k8s.io/pod-security-admission/api"
	psapolicy "k8s.io/pod-security-admission/policy"
)

// Check judges every document of a manifest. It returns how many there were.
// The error joins one for each fault.
func Check(manifest []byte) (documents int, err error) {
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, legacyscheme.Scheme, legacyscheme.Scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	var faults []error
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, errors.Join(faults...)
		}
		if err != nil {
			return documents, err
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		documents++
		if err := check(strict, document); err != nil {
			faults = append(faults, fmt.Errorf("document %d: %w", documents, err))
		}
	}
}

func check(strict runtime.Serializer, document []byte) error {
	object, kind, err := strict.Decode(document, nil, nil)
	if err != nil {
		return err
	}
	legacyscheme.Scheme.Default(object)
	switch object := object.(type) {
	case *corev1.Pod:
		return checkPod(object)
	case *appsv1.Deployment:
		return checkDeployment(object)
	default:
		return fmt.Errorf("kind %s is not one that the documentation uses", kind)
	}
}

func checkPod(pod *corev1.Pod) error {
	if pod.Namespace == "" {
		pod.Namespace = corev1.NamespaceDefault
	}
	var internal core.Pod
	if err := legacyscheme.Scheme.Convert(pod, &internal, nil); err != nil {
		return err
	}
	opts := podutil.GetValidationOptionsFromPodSpecAndMeta(&internal.Spec, nil, &internal.ObjectMeta, nil)
	opts.ResourceIsPod = true
	return errors.Join(join(validation.ValidatePodCreate(&internal, opts)), restricted(&pod.ObjectMeta, &pod.Spec))
}

func checkDeployment(deployment *appsv1.Deployment) error {
	if deployment.Namespace == "" {
		deployment.Namespace = corev1.NamespaceDefault
	}
	var internal apps.Deployment
	if err := legacyscheme.Scheme.Convert(deployment, &internal, nil); err != nil {
		return err
	}
	opts := podutil.GetValidationOptionsFromPodTemplate(&internal.Spec.Template, nil)
	return errors.Join(
		join(appsvalidation.ValidateDeployment(&internal, opts)),
		restricted(&deployment.Spec.Template.ObjectMeta, &deployment.Spec.Template.Spec),
	)
}

// restricted evaluates the restricted Pod Security standard, latest version.
func restricted(meta *metav1.ObjectMeta, spec *corev1.PodSpec) error {
	evaluator, err := psapolicy.NewEvaluator(psapolicy.DefaultChecks(), nil)
	if err != nil {
		return err
	}
	level := psaapi.LevelVersion{Level: psaapi.LevelRestricted, Version: psaapi.LatestVersion()}
	result := psapolicy.AggregateCheckResults(evaluator.EvaluatePod(level, meta, spec))
	if result.Allowed {
		return nil
	}
	return fmt.Errorf("not allowed by the restricted Pod Security standard: %s", result.ForbiddenDetail())
}

func join(list field.ErrorList) error {
	errs := make([]error, len(list))
	for i, err := range list {
		errs[i] = err
	}
	return errors.Join(errs...)
}
