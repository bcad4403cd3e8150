package kube_test

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // the scheme's apps/v1
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // the scheme's v1
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install" // the scheme's networking.k8s.io/v1
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install" // the scheme's policy/v1
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	"k8s.io/pod-security-admission/api"
	podsecurity "k8s.io/pod-security-admission/policy"
)

// apply does what the API server does with an object that kubectl sends:
// decode strictly, set defaults, convert, validate; and admit its Pods by the
// restricted Pod Security standard, as a namespace with that label does. It
// returns all that is wrong.
func apply(document []byte) []string {
	object, err := decode(document)
	if err != nil {
		return []string{err.Error()}
	}
	legacyscheme.Scheme.Default(object)
	switch o := object.(type) {
	case *corev1.Pod:
		return append(validatePod(o), restricted(&o.ObjectMeta, &o.Spec)...)
	case *appsv1.Deployment:
		return append(validateDeployment(o), restricted(&o.Spec.Template.ObjectMeta, &o.Spec.Template.Spec)...)
	case *appsv1.StatefulSet:
		return append(validateStatefulSet(o), restricted(&o.Spec.Template.ObjectMeta, &o.Spec.Template.Spec)...)
	case *corev1.ConfigMap:
		return validateAs(o, &core.ConfigMap{}, func(in *core.ConfigMap) field.ErrorList { return validation.ValidateConfigMap(in) })
	case *corev1.Secret:
		return validateAs(o, &core.Secret{}, func(in *core.Secret) field.ErrorList { return validation.ValidateSecret(in) })
	case *corev1.Namespace:
		return validateAs(o, &core.Namespace{}, func(in *core.Namespace) field.ErrorList { return validation.ValidateNamespace(in) })
	case *policyv1.PodDisruptionBudget:
		return validateAs(o, &policy.PodDisruptionBudget{}, func(in *policy.PodDisruptionBudget) field.ErrorList {
			return policyvalidation.ValidatePodDisruptionBudget(in, policyvalidation.PodDisruptionBudgetValidationOptions{})
		})
	case *networkingv1.NetworkPolicy:
		return validateAs(o, &networking.NetworkPolicy{}, func(in *networking.NetworkPolicy) field.ErrorList {
			return networkingvalidation.ValidateNetworkPolicy(in, networkingvalidation.NetworkPolicyValidationOptions{})
		})
	default:
		return []string{fmt.Sprintf("nothing here validates %T", object)}
	}
}

func decode(document []byte) (runtime.Object, error) {
	scheme := legacyscheme.Scheme
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	object, _, err := strict.Decode(document, nil, nil)
	return object, err
}

func validatePod(pod *corev1.Pod) []string {
	return validateAs(pod, &core.Pod{}, func(in *core.Pod) field.ErrorList {
		opts := podutil.GetValidationOptionsFromPodSpecAndMeta(&in.Spec, nil, &in.ObjectMeta, nil)
		opts.ResourceIsPod = true
		return validation.ValidatePodCreate(in, opts)
	})
}

func validateDeployment(deployment *appsv1.Deployment) []string {
	return validateAs(deployment, &apps.Deployment{}, func(in *apps.Deployment) field.ErrorList {
		return appsvalidation.ValidateDeployment(in, podutil.GetValidationOptionsFromPodTemplate(&in.Spec.Template, nil))
	})
}

func validateStatefulSet(set *appsv1.StatefulSet) []string {
	return validateAs(set, &apps.StatefulSet{}, func(in *apps.StatefulSet) field.ErrorList {
		return appsvalidation.ValidateStatefulSet(in, podutil.GetValidationOptionsFromPodTemplate(&in.Spec.Template, nil))
	})
}

// validateAs converts to the API server's own type and validates that.
func validateAs[T any](object metav1.Object, in T, validate func(T) field.ErrorList) []string {
	if _, namespace := object.(*corev1.Namespace); !namespace && object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	if err := legacyscheme.Scheme.Convert(object, in, nil); err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, err := range validate(in) {
		found = append(found, err.Error())
	}
	return found
}

// restricted evaluates the Pod Security standard of that name.
func restricted(meta *metav1.ObjectMeta, spec *corev1.PodSpec) []string {
	evaluator, err := podsecurity.NewEvaluator(podsecurity.DefaultChecks(), nil)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, result := range evaluator.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, meta, spec) {
		if !result.Allowed {
			found = append(found, strings.Join([]string{"restricted Pod Security", result.ForbiddenReason, result.ForbiddenDetail}, ": "))
		}
	}
	return found
}
