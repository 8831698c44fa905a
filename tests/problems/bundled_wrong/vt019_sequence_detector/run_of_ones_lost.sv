// Wrong: a third one sends the detector back to the first.
module TopModule (
  input  logic       clk,
  input  logic       areset,
  input  logic       valid,
  input  logic       bit_in,
  output logic       found,
  output logic [3:0] hits
);

  localparam [1:0] NONE = 2'd0, ONE = 2'd1, ONE_ONE = 2'd2, ONE_ONE_ZERO = 2'd3;

  logic [1:0] state;
  wire        last = valid && bit_in && (state == ONE_ONE_ZERO);

  always_ff @(posedge clk or posedge areset) begin
    if (areset) begin
      state <= NONE;
      found <= 1'b0;
      hits <= 4'd0;
    end else begin
      found <= last;
      if (last) hits <= hits + 4'd1;
      if (valid)
        case (state)
          NONE:    state <= bit_in ? ONE : NONE;
          ONE:     state <= bit_in ? ONE_ONE : NONE;
          ONE_ONE: state <= bit_in ? ONE : ONE_ONE_ZERO;
          default: state <= bit_in ? ONE : NONE;
        endcase
    end
  end

endmodule
