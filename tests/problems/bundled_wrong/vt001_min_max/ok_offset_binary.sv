// Right: flipping the sign bit maps signed order to unsigned order.
module TopModule (
  input  logic [7:0] a,
  input  logic [7:0] b,
  input  logic       is_signed,
  output logic [7:0] min,
  output logic [7:0] max,
  output logic       equal
);

  logic [7:0] ka;
  logic [7:0] kb;

  always_comb begin
    ka = {a[7] ^ is_signed, a[6:0]};
    kb = {b[7] ^ is_signed, b[6:0]};
    min = b;
    max = a;
    if (ka < kb) begin
      min = a;
      max = b;
    end
  end

  assign equal = ~|(a ^ b);

endmodule
