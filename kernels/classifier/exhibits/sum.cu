// Exhibit. Source: the course report on classifier and convolution layers.
// Every block multiplies a slice of the inputs by its weights and adds the sum to the
// outputs with a plain +=. Blocks run at the same time: one reads the output before
// another has written it back, and one of the two additions is lost.
constexpr int kSlice = 16;

extern "C" __global__ void classifier(const int* __restrict__ input,
                                      const int* __restrict__ weights, int* output,
                                      int inputs, int outputs)
{
    const int neuron = blockIdx.x * blockDim.x + threadIdx.x,
              first = blockIdx.y * kSlice;
    if (neuron < outputs) {
        int sum = 0;
        for (int i = first; i < first + kSlice && i < inputs; ++i) {
            sum += input[i] * weights[static_cast<size_t>(i) * outputs + neuron];
        }
        output[neuron] += sum;
    }
}
