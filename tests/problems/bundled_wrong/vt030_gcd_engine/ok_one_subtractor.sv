// Right: the sign of one difference decides.
module TopModule (
  input  logic       clk,
  input  logic       areset,
  input  logic       start,
  input  logic [7:0] a,
  input  logic [7:0] b,
  output logic       busy,
  output logic       done,
  output logic [7:0] result
);

  localparam IDLE = 1'b0, RUN = 1'b1;

  reg        state;
  reg  [7:0] upper;
  reg  [7:0] lower;
  wire [8:0] difference = {1'b0, upper} - {1'b0, lower};

  assign busy = (state == RUN);

  always @(posedge clk, posedge areset)
    if (areset) begin
      state <= IDLE;
      done <= 0;
      result <= 0;
    end else begin
      done <= (state == RUN) & ~|lower;
      case (state)
        IDLE: if (start) begin
          {upper, lower} <= {a, b};
          state <= RUN;
        end
        default:
          if (~|lower) begin
            result <= upper;
            state <= IDLE;
          end else if (difference[8])
            {upper, lower} <= {lower, upper};
          else
            upper <= difference[7:0];
      endcase
    end

endmodule
